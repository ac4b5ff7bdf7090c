"""What the collector runs: sources that are looked at again and again."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ...events import SourceStanding


class Look(NamedTuple):
    """How a source stood when it was looked at."""

    state: SourceStanding
    why: str | None = None
    """What is wrong and what to do; None: nothing is."""
    again_s: float | None = None
    """When to look again; None: after the source's period."""
    is_told: bool = False
    """Whether the source keeps its states itself."""


class Source(Protocol):
    """Something that brings events into the store. A look that raises is tried again, later and later."""

    name: str
    kind: str
    period_s: float

    def look(self) -> Look:
        """Bring what is there into the store."""
        ...

    def close(self) -> None:
        """Bring the rest into the store, and let go of everything."""
        ...
