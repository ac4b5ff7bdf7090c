"""A segment: cached blocks with the same holders, and who has which part of them."""

from __future__ import annotations

from ..events import PART_BITS


class Occupant:
    """Somebody whose KV blocks are added up: a sequence that prefills, or all who decode for one tenant and tier."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts = 0
        """Its part of the hashed blocks that it holds, in 2⁻²⁰ blocks: one of n sharers has an n-th of a block."""


class Segment:
    """Neighbouring blocks of a sequence with the same holders.

    They are blocks `start` to `start + size` of every sequence whose ids agree; without ids nobody can find them.
    """

    __slots__ = ("ids", "owners", "size", "start")

    def __init__(self, size: int, ids: tuple[int, ...] = (), start: int = 0) -> None:
        self.size: int = size
        self.ids = ids
        """The prefix ids that its blocks belong to, perhaps more; the first one and `start` are its key."""
        self.start = start
        self.owners: dict[Occupant, int] = {}
        """Who holds it, and how many sequences of theirs do, in the order in which they came."""

    def enter(self, occupant: Occupant) -> None:
        """One more sequence of an occupant holds it."""
        owners = self.owners
        if not owners:
            owners[occupant] = 1
            occupant.parts += self.size << PART_BITS
            return
        if len(owners) == 1 and occupant in owners:
            owners[occupant] += 1
            return
        self._weigh(-1)
        owners[occupant] = owners.get(occupant, 0) + 1
        self._weigh(1)

    def leave(self, occupant: Occupant) -> None:
        """One sequence of an occupant holds it no longer."""
        owners = self.owners
        if len(owners) == 1:
            if owners[occupant] > 1:
                owners[occupant] -= 1
                return
            del owners[occupant]
            occupant.parts -= self.size << PART_BITS
            return
        self._weigh(-1)
        self._drop(occupant)
        self._weigh(1)

    def pass_on(self, before: Occupant, after: Occupant) -> None:
        """One sequence of `before` holds it for `after` from now on."""
        if self.owners == {before: 1}:
            self.owners = {after: 1}
            before.parts -= self.size << PART_BITS
            after.parts += self.size << PART_BITS
            return
        self._weigh(-1)
        self._drop(before)
        self.owners[after] = self.owners.get(after, 0) + 1
        self._weigh(1)

    def _drop(self, occupant: Occupant) -> None:
        self.owners[occupant] -= 1
        if not self.owners[occupant]:
            del self.owners[occupant]

    def _weigh(self, sign: int) -> None:
        """Add its blocks to its owners' parts, or take them off: 1/sharers, rounded down, the rest to the first."""
        size = sign * self.size
        if len(self.owners) == 1:
            for owner in self.owners:
                owner.parts += size << PART_BITS
        elif self.owners:
            part, rest = divmod(1 << PART_BITS, sum(self.owners.values()))
            for owner, sharers in self.owners.items():
                owner.parts += size * (part * sharers + rest)
                rest = 0
