"""A prefix: what one sequence shares with others of the KV cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .prefix_cache import Segment


class Occupant:
    """Somebody whose KV blocks are added up: a sequence that prefills, or all who decode for one tenant and tier."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts = 0
        """Its part of the hashed blocks that it holds, in 2⁻²⁰ blocks: one of n sharers has an n-th of a block."""


class Prefix:
    """The blocks of a sequence's prompt that have ids, and how many of them it holds in the cache.

    A sequence holds the first `held` of them; all blocks behind those are its own.
    """

    __slots__ = ("closed", "held", "ids", "occupant", "own", "reach")

    def __init__(self, ids: tuple[int, ...] = (), reach: int = 0) -> None:
        self.ids = ids
        self.reach = reach
        """Full KV blocks of the prompt that the ids stand for."""
        self.held = 0
        self.occupant: Occupant | None = None
        """Who holds them; None: nothing is held."""
        self.closed = False
        """Whether its next block is the copy of a cached one: what comes behind a copy is not hashed."""
        self.own: Segment | None = None
        """The full blocks behind `reach` that it had before it was preempted, as far as nobody took them since."""
