"""Who sits where: seats per step, from cells that only tell how many of each kind ride."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from typing import NamedTuple

from ..events import Request, Share, Step

Kind = tuple[str, str]
"""Tenant and tier."""
KEPT = 600


class Seat(NamedTuple):
    """A rider's seat: since when it is taken (UTC ns)."""

    since_ns: int
    is_exact: bool
    """False: it was taken already when the watch began, or somebody unknown of its kind got off since."""


class Ride(NamedTuple):
    """One step with everybody's seat, and who got on and off before it."""

    step: Step
    cells: tuple[Share, ...]
    seats: dict[Kind, tuple[Seat, ...]]
    """Those who have sat longest first."""
    on: dict[Kind, int]
    off: dict[Kind, int]


class Boarding:
    """Follows one run's steps in their order and keeps the newest rides.

    A finished request says when it boarded, so its seat is the one that gets free. Where somebody leaves without one
    (put off the batch, or a source that tells no requests), the longest rider of its kind is taken to have left.
    """

    def __init__(self) -> None:
        self.rides: deque[Ride] = deque(maxlen=KEPT)
        self._seats: dict[Kind, tuple[Seat, ...]] = {}
        self._finished: defaultdict[Kind, list[Request]] = defaultdict(list)
        self._has_begun = False

    def finished(self, request: Request) -> None:
        """A request has ended; the seat gets free with the first step after it."""
        self._finished[request.tenant_id, request.tier].append(request)

    def step(self, step: Step, cells: Sequence[Share]) -> None:
        """Take one step with all of its cells."""
        counts: defaultdict[Kind, int] = defaultdict(int)
        for cell in cells:
            counts[cell.tenant_id, cell.tier] += cell.seqs
        seats: dict[Kind, tuple[Seat, ...]] = {}
        on: dict[Kind, int] = {}
        off: dict[Kind, int] = {}
        for kind in {**self._seats, **counts}:
            before = self._seats.get(kind, ())
            left = self._got_off(kind, before, step.started_ns)
            after = self._filled(left, counts[kind], step.started_ns)
            kept = min(len(left), counts[kind])
            if len(before) > kept:
                off[kind] = len(before) - kept
            if counts[kind] > kept and self._has_begun:
                on[kind] = counts[kind] - kept
            if after:
                seats[kind] = after
        self._seats = seats
        self._has_begun = True
        self.rides.append(Ride(step, tuple(cells), seats, on, off))

    def _got_off(self, kind: Kind, seats: tuple[Seat, ...], now_ns: int) -> tuple[Seat, ...]:
        """The seats of those whose requests had not ended before `now_ns`."""
        waiting = self._finished.get(kind)
        if not waiting:
            return seats
        ended = [request for request in waiting if request.finished_ns <= now_ns]
        self._finished[kind] = [request for request in waiting if request.finished_ns > now_ns]
        left = list(seats)
        for request in ended:
            if left and request.scheduled_ns is not None:
                left.remove(_seat_of(request.scheduled_ns, left))
        return tuple(left)

    def _filled(self, seats: tuple[Seat, ...], count: int, now_ns: int) -> tuple[Seat, ...]:
        """The seats for `count` riders: newcomers at the end, or the longest riders gone."""
        if len(seats) == count:
            return seats
        if len(seats) > count:
            return tuple(seat._replace(is_exact=False) for seat in seats[len(seats) - count :])
        return (*seats, *[Seat(now_ns, self._has_begun)] * (count - len(seats)))


def _seat_of(scheduled_ns: int, seats: list[Seat]) -> Seat:
    """The seat that was taken nearest to an instant."""
    return min(seats, key=lambda seat: abs(seat.since_ns - scheduled_ns))
