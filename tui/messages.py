"""What the worker tells the app."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual.message import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..events import Run
    from .scene import Ask
    from .snapshot import Snapshot


@dataclass
class Polled(Message):
    """A new snapshot; None while the store holds no run. Only the newest one waiting is worth handling.

    `view` is what `ask`, the wish of the page in front, made of the same instant.
    """

    snapshot: Snapshot | None
    ask: Ask | None = None
    view: Any = None
    runs: Sequence[Run] = ()

    def can_replace(self, message: Message) -> bool:
        """A newer snapshot replaces an older one that nobody has looked at yet."""
        return isinstance(message, Polled)


@dataclass
class Failed(Message):
    """The store could not be read."""

    reason: str
    at_ns: int

    def can_replace(self, message: Message) -> bool:
        """The newest reason is the one to tell."""
        return isinstance(message, Failed)


@dataclass
class Made(Message):
    """A worker of a page has made something, for the wish `of` the page."""

    of: Any
    made: Any


@dataclass
class Refused(Message):
    """A worker of a page could not; in words for people."""

    words: str
