"""The prefix cache: a block pool that finds computed blocks again, as vLLM V1's does.

Blocks that are given back keep their content until somebody else takes them, the least recently used first and the
tail of a sequence before its head. So what remains of a prefix is always a head of it.
"""

from __future__ import annotations

from collections import OrderedDict

from .block_pool import BlockPool, Hits
from .prefix import Prefix
from .segment import Occupant, Segment


class PrefixCache(BlockPool):
    """A block pool that keeps computed blocks in segments, and all free blocks in one queue.

    Each id stands for `prefix_block_tokens` tokens and for everything before them; a prompt's last id may stand for
    fewer. A block is hashed when its computation is scheduled. A computed copy of a cached block is not hashed.
    """

    __slots__ = ("_queue", "_segments", "blocks_per_id")

    def __init__(self, total: int, block_size: int, prefix_block_tokens: int) -> None:
        super().__init__(total, block_size)
        self.blocks_per_id = prefix_block_tokens // block_size
        self._segments: dict[tuple[int, int], Segment] = {}
        self._queue: OrderedDict[Segment, None] = OrderedDict({Segment(total): None})
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
                if segment.ids:
                    del self._segments[segment.ids[0], segment.start]

    def release(self, prefix: Prefix, blocks: int, full: int = 0) -> None:
        """See `BlockPool`."""
        own = blocks - prefix.held
        kept = max(0, full - prefix.reach)
        copies = min(own, prefix.reach - prefix.held)
        if kept:
            prefix.own = Segment(kept)
        for segment in (Segment(own - kept - copies), prefix.own, Segment(copies)):
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
        start, end = prefix.held, min(full, prefix.reach)
        if start >= end or prefix.closed or prefix.occupant is None:
            return
        ids = prefix.ids[start // self.blocks_per_id : -(-end // self.blocks_per_id)]
        if (ids[0], start) in self._segments:
            prefix.closed = True
            return
        segment = self._segments[ids[0], start] = Segment(end - start, ids, start)
        segment.enter(prefix.occupant)
        prefix.held = end

    def hand_over(self, prefix: Prefix, occupant: Occupant) -> None:
        """See `BlockPool`."""
        before, prefix.occupant = prefix.occupant, occupant
        if before is None or before is occupant:
            return
        for segment in self._holding(prefix):
            segment.pass_on(before, occupant)

    def _find(self, prefix: Prefix, most: int) -> list[tuple[Segment, int]]:
        """The longest cached head of at most `most` blocks: segments, and how many blocks of each."""
        found: list[tuple[Segment, int]] = []
        ids, segments, blocks_per_id = prefix.ids, self._segments, self.blocks_per_id
        at = 0
        while at < most:
            first = at // blocks_per_id
            segment = segments.get((ids[first], at))
            if segment is None:
                break
            size, alike = segment.size, ids[first : first + len(segment.ids)]
            if at + size > most or alike != segment.ids:
                size = min(size, most - at, self._agreeing(segment, alike))
            found.append((segment, size))
            at += size
            if size < segment.size:
                break
        return found

    def _agreeing(self, segment: Segment, ids: tuple[int, ...]) -> int:
        """Blocks of a segment that belong to these ids, of which the first is its own first one."""
        if ids == segment.ids:
            return segment.size
        agreeing = next((n for n, (a, b) in enumerate(zip(ids, segment.ids, strict=False)) if a != b), len(ids))
        return (segment.start // self.blocks_per_id + agreeing) * self.blocks_per_id - segment.start

    def _holding(self, prefix: Prefix) -> list[Segment]:
        """What a sequence holds, in order."""
        return [segment for segment, _ in self._find(prefix, prefix.held)]

    def _split(self, segment: Segment, size: int) -> Segment:
        """Make the first `size` blocks of a segment one of their own; the rest keeps its place in the queue."""
        at = segment.start + size
        first, end = segment.start // self.blocks_per_id, -(-at // self.blocks_per_id)
        head = Segment(size, segment.ids[: end - first], segment.start)
        head.owners.update(segment.owners)
        segment.ids = segment.ids[at // self.blocks_per_id - first :]
        segment.start, segment.size = at, segment.size - size
        self._segments[head.ids[0], head.start] = head
        self._segments[segment.ids[0], segment.start] = segment
        return head
