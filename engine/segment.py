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

    def parts(self) -> dict[Occupant, int]:
        """What every owner has of its blocks, in 2⁻²⁰ blocks: 1/sharers, rounded down, the rest to the first."""
        part, rest = divmod(1 << PART_BITS, sum(self.owners.values()) or 1)
        parts = {owner: self.size * part * sharers for owner, sharers in self.owners.items()}
        for first in self.owners:
            parts[first] += self.size * rest
            break
        return parts

    def enter(self, occupant: Occupant) -> None:
        """One more sequence of an occupant holds it."""
        self._count(occupant, 1)

    def leave(self, occupant: Occupant) -> None:
        """One sequence of an occupant holds it no longer."""
        self._count(occupant, -1)

    def pass_on(self, before: Occupant, after: Occupant) -> None:
        """One sequence of `before` holds it for `after` from now on."""
        if self.owners == {before: 1}:
            self.owners = {after: 1}
            before.parts -= self.size << PART_BITS
            after.parts += self.size << PART_BITS
        else:
            self.leave(before)
            self.enter(after)

    def _count(self, occupant: Occupant, change: int) -> None:
        owners = self.owners
        alone = not owners or (len(owners) == 1 and occupant in owners)
        before = {} if alone else self.parts()
        sharers = owners.get(occupant, 0) + change
        if sharers:
            owners[occupant] = sharers
        else:
            del owners[occupant]
        if not alone:
            for owner, parts in before.items():
                owner.parts -= parts
            for owner, parts in self.parts().items():
                owner.parts += parts
        elif sharers == 0:
            occupant.parts -= self.size << PART_BITS
        elif sharers == change:
            occupant.parts += self.size << PART_BITS
