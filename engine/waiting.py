"""The waiting queue."""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain, islice

from .sequence import Sequence


class WaitingQueue:
    """Sequences that wait for a seat: by rank, first come first served within one."""

    __slots__ = ("_lanes", "_ranks")

    def __init__(self) -> None:
        self._lanes: dict[int, OrderedDict[str, Sequence]] = {}
        self._ranks: list[int] = []
        """Ranks of those who wait, in order."""

    def __len__(self) -> int:
        return sum(map(len, self._lanes.values()))

    def __iter__(self) -> Iterator[Sequence]:
        return chain.from_iterable(self._lanes[rank].values() for rank in self._ranks)

    def __contains__(self, seq: Sequence) -> bool:
        return seq.request_id in self._lanes.get(seq.rank, ())

    @property
    def head(self) -> Sequence | None:
        """The sequence whose turn is next; None: nobody waits."""
        return next(iter(self._lanes[self._ranks[0]].values())) if self._ranks else None

    @property
    def oldest_ns(self) -> int | None:
        """Arrival of whoever has waited longest; None: nobody waits."""
        heads = (next(iter(lane.values())) for lane in self._lanes.values())
        return min((seq.arrival.arrived_ns for seq in heads), default=None)

    def first(self, count: int) -> list[Sequence]:
        """The next `count` sequences in order, or all if fewer wait."""
        return list(islice(self, count))

    def put(self, seq: Sequence) -> None:
        """Queue a newcomer at the end of its rank."""
        self._lane(seq)[seq.request_id] = seq

    def put_back(self, seq: Sequence) -> None:
        """Queue a preempted sequence at the front of its rank: all who wait there came after it."""
        lane = self._lane(seq)
        lane[seq.request_id] = seq
        lane.move_to_end(seq.request_id, last=False)

    def remove(self, seq: Sequence) -> None:
        """Take a sequence out of the queue."""
        lane = self._lanes[seq.rank]
        del lane[seq.request_id]
        if not lane:
            del self._lanes[seq.rank]
            self._ranks.remove(seq.rank)

    def _lane(self, seq: Sequence) -> OrderedDict[str, Sequence]:
        if seq.rank not in self._lanes:
            self._lanes[seq.rank] = OrderedDict()
            insort(self._ranks, seq.rank)
        return self._lanes[seq.rank]
