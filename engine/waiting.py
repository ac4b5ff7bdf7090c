"""The waiting queue."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain, islice

from ..events import Tier
from .sequence import Sequence

TIERS: tuple[Tier, ...] = ("fast", "standard", "batch")


class WaitingQueue:
    """Sequences that wait for a seat: by tier (fast, standard, batch), first come first served within one."""

    __slots__ = ("_lanes", "_order")

    def __init__(self) -> None:
        self._lanes: dict[Tier, OrderedDict[str, Sequence]] = {tier: OrderedDict() for tier in TIERS}
        self._order = tuple(self._lanes.values())

    def __len__(self) -> int:
        fast, standard, batch = self._order
        return len(fast) + len(standard) + len(batch)

    def __iter__(self) -> Iterator[Sequence]:
        return chain.from_iterable(lane.values() for lane in self._order)

    def __contains__(self, seq: Sequence) -> bool:
        return seq.request_id in self._lanes[seq.arrival.tier]

    @property
    def head(self) -> Sequence | None:
        """The sequence whose turn is next; None: nobody waits."""
        for lane in self._order:
            if lane:
                return next(iter(lane.values()))
        return None

    @property
    def oldest_ns(self) -> int | None:
        """Arrival of whoever has waited longest; None: nobody waits."""
        heads = (next(iter(lane.values())) for lane in self._order if lane)
        return min((seq.arrival.arrived_ns for seq in heads), default=None)

    def first(self, count: int) -> list[Sequence]:
        """The next `count` sequences in order, or all if fewer wait."""
        return list(islice(self, count))

    def put(self, seq: Sequence) -> None:
        """Queue a newcomer at the end of its tier."""
        self._lanes[seq.arrival.tier][seq.request_id] = seq

    def put_back(self, seq: Sequence) -> None:
        """Queue a preempted sequence at the front of its tier."""
        lane = self._lanes[seq.arrival.tier]
        lane[seq.request_id] = seq
        lane.move_to_end(seq.request_id, last=False)

    def remove(self, seq: Sequence) -> None:
        """Take a sequence out of the queue."""
        del self._lanes[seq.arrival.tier][seq.request_id]
