"""The prefix cache: a block pool that finds computed blocks again, as vLLM V1's does.

Blocks that are given back keep their content until somebody else takes them, the least recently used first and the
tail of a sequence before its head. So what remains of a prefix is always a head of it.
"""

from __future__ import annotations

from collections import OrderedDict

from ..events import PART_BITS
from .block_pool import BlockPool, Hits
from .prefix import Occupant, Prefix


class Segment:
    """Neighbouring blocks with the same holders: of one prefix id, or blocks that nobody can find."""

    __slots__ = ("key", "owners", "size")

    def __init__(self, key: tuple[int, int] | None, size: int) -> None:
        self.key = key
        """The prefix id, and which of its KV blocks is the first; None: not hashed."""
        self.size: int = size
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

    def _count(self, occupant: Occupant, change: int) -> None:
        for owner, parts in self.parts().items():
            owner.parts -= parts
        self.owners[occupant] = self.owners.get(occupant, 0) + change
        if not self.owners[occupant]:
            del self.owners[occupant]
        for owner, parts in self.parts().items():
            owner.parts += parts


class PrefixCache(BlockPool):
    """A block pool with one entry per prefix id (more where holders differ) and one queue of all free blocks.

    Each id stands for `prefix_block_tokens` tokens and for everything before them; a prompt's last id may stand for
    fewer. A block is hashed when its computation is scheduled. A computed copy of a cached block is not hashed.
    """

    __slots__ = ("_queue", "_segments", "blocks_per_id")

    def __init__(self, total: int, block_size: int, prefix_block_tokens: int) -> None:
        super().__init__(total, block_size)
        self.blocks_per_id = prefix_block_tokens // block_size
        self._segments: dict[tuple[int, int], Segment] = {}
        self._queue: OrderedDict[Segment, None] = OrderedDict({Segment(None, total): None})
        """Free blocks, the next to be taken first; within a segment from its tail."""

    @property
    def segments(self) -> list[Segment]:
        """All that is cached, held or free."""
        return list(self._segments.values())

    @property
    def queue(self) -> list[Segment]:
        """All that is free, cached or not, the next to be taken first."""
        return list(self._queue)

    def prefix(self, prompt_tokens: int, ids: tuple[int, ...] | None) -> Prefix:
        """See `BlockPool`."""
        ids = ids or ()
        return Prefix(ids, min(len(ids) * self.blocks_per_id, prompt_tokens // self.block_size))

    def allocate(self, blocks: int) -> None:
        """See `BlockPool`. What the blocks held can no longer be found."""
        super().allocate(blocks)
        while blocks:
            segment = next(iter(self._queue))
            taken = min(blocks, segment.size)
            blocks -= taken
            segment.size -= taken
            if not segment.size:
                del self._queue[segment]
                if segment.key is not None:
                    del self._segments[segment.key]

    def release(self, prefix: Prefix, blocks: int, full: int = 0) -> None:
        """See `BlockPool`."""
        own = blocks - prefix.held
        kept = max(0, full - prefix.reach)
        copies = min(own, prefix.reach - prefix.held)
        if kept:
            prefix.own = Segment(None, kept)
        for segment in (Segment(None, own - kept - copies), prefix.own, Segment(None, copies)):
            if segment is not None and segment.size:
                self._queue[segment] = None
        self.free += own
        if prefix.occupant is not None:
            for segment in reversed(self._holding(prefix)):
                segment.leave(prefix.occupant)
                if not segment.owners:
                    self._queue[segment] = None
                    self.free += segment.size
        prefix.held, prefix.occupant, prefix.closed = 0, None, False

    def hits(self, prefix: Prefix, most: int) -> Hits:
        """See `BlockPool`."""
        blocks = held = 0
        for segment, size in self._find(prefix, min(most, prefix.reach)):
            blocks += size
            held += size if segment.owners else 0
        if prefix.own is not None and blocks == prefix.reach:
            blocks += prefix.own.size
        return Hits(blocks, held)

    def take_hits(self, prefix: Prefix, most: int, occupant: Occupant) -> int:
        """See `BlockPool`."""
        prefix.occupant = occupant
        for segment, size in self._find(prefix, min(most, prefix.reach)):
            part = segment if size == segment.size else self._split(segment, size)
            if not part.owners:
                self._queue.pop(part, None)
                self.free -= size
            part.enter(occupant)
            prefix.held += size
        own, prefix.own = prefix.own, None
        if own is None or not own.size or prefix.held < prefix.reach:
            return prefix.held
        del self._queue[own]
        self.free -= own.size
        return prefix.held + own.size

    def publish(self, prefix: Prefix, full: int) -> None:
        """See `BlockPool`."""
        end, occupant = min(full, prefix.reach), prefix.occupant
        while prefix.held < end and occupant is not None and not prefix.closed:
            number, start = divmod(prefix.held, self.blocks_per_id)
            key = prefix.ids[number], start
            if key in self._segments:
                prefix.closed = True
                break
            segment = self._segments[key] = Segment(key, min(self.blocks_per_id - start, end - prefix.held))
            segment.enter(occupant)
            prefix.held += segment.size

    def hand_over(self, prefix: Prefix, occupant: Occupant) -> None:
        """See `BlockPool`."""
        before, prefix.occupant = prefix.occupant, occupant
        if before is None or before is occupant:
            return
        for segment in self._holding(prefix):
            segment.leave(before)
            segment.enter(occupant)

    def _find(self, prefix: Prefix, most: int) -> list[tuple[Segment, int]]:
        """The longest cached head of at most `most` blocks: segments, and how many blocks of each."""
        found: list[tuple[Segment, int]] = []
        for prefix_id in prefix.ids:
            wanted, start = min(self.blocks_per_id, most), 0
            while start < wanted:
                segment = self._segments.get((prefix_id, start))
                if segment is None:
                    return found
                size = min(segment.size, wanted - start)
                found.append((segment, size))
                start += size
            most -= wanted
            if not most:
                break
        return found

    def _holding(self, prefix: Prefix) -> list[Segment]:
        """What a sequence holds, in order."""
        return [segment for segment, _ in self._find(prefix, prefix.held)]

    def _split(self, segment: Segment, size: int) -> Segment:
        """Make the first `size` blocks of a segment one of their own; the rest keeps its place in the queue."""
        prefix_id, start = segment.key or (0, 0)
        head = Segment((prefix_id, start), size)
        head.owners.update(segment.owners)
        segment.key = prefix_id, start + size
        segment.size -= size
        self._segments[prefix_id, start] = head
        self._segments[segment.key] = segment
        return head
