"""A prefix: what one sequence shares with others of the KV cache."""

from __future__ import annotations

from .segment import Occupant, Segment


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
