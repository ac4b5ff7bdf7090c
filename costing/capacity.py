"""Capacity: the GPU time that finance pays for, declared or, where nothing is declared, the runs' walls."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from ..errors import InputError
from ..events import MINUTE_NS, Capacity, Run
from .conflicts import Conflict, beyond_declared
from .periods import Period, Span
from .rate_card import RateCard


class CapacityError(InputError):
    """Declared capacity that cannot be paid."""


class Place(NamedTuple):
    """GPUs of one type on one host."""

    host: str
    gpu_type: str


class Slice(NamedTuple):
    """A local day of a place at one rate: what is rounded to the micro-unit on its own."""

    day: int
    place: Place
    rate: int


class Paid(NamedTuple):
    """So many GPUs, paid in [from, to) UTC ns."""

    from_ns: int
    to_ns: int
    gpus: int


@dataclass
class Expected:
    """What a period's lines must add up to."""

    declared: dict[Place, list[Paid]]
    """Declared capacity within the period: disjoint and in order."""
    declared_ns: Counter[Slice] = field(default_factory=Counter[Slice])
    """Declared GPU time."""
    walls_ns: Counter[Slice] = field(default_factory=Counter[Slice])
    """GPU time of runs where nothing is declared."""
    up: dict[Place, list[Paid]] = field(default_factory=dict[Place, list[Paid]])
    """When anything was declared or running: disjoint and in order."""
    excess: list[Conflict] = field(default_factory=list[Conflict])
    """Runs with more GPUs than are declared."""
    excess_ns: Counter[Slice] = field(default_factory=Counter[Slice])
    """Their GPU time beyond declared capacity, at the place's rate."""


def expected(period: Period, runs: Sequence[Run], capacities: Sequence[Capacity], card: RateCard) -> Expected:
    """GPU time to be paid within a period; declared capacity goes before the runs' walls, instant by instant.

    Raises CapacityError for capacity without GPUs, or that starts or ends within a minute.
    """
    for capacity in capacities:
        _check(capacity)
    result = Expected(_declared(period, capacities))
    pieces = Pieces(period, card)
    spans: defaultdict[Place, list[Paid]] = defaultdict(list)
    for place, paid in result.declared.items():
        spans[place] += paid
        for part in paid:
            result.declared_ns.update(pieces.of(place, part))
    for run in runs:
        place, wall = Place(run.host, run.gpu_type), clip(Paid(run.started_ns, run.wall_end_ns, run.gpus), period)
        if wall is None:
            continue
        spans[place].append(wall)
        for part in _outside(wall, result.declared.get(place, [])):
            result.walls_ns.update(pieces.of(place, part, run.engine_id))
    result.excess = beyond_declared(runs, result.declared, period)
    for each in result.excess:
        part = Paid(each.from_ns, each.to_ns, each.excess_gpus)
        result.excess_ns.update(pieces.of(Place(each.host, each.gpu_type), part))
    result.up = {place: stack(paid) for place, paid in spans.items()}
    return result


class Pieces:
    """Cuts paid time at the borders of days and rates."""

    def __init__(self, period: Period, card: RateCard) -> None:
        self.card = card
        self.days = period.days()
        self.borders = sorted({*card.cuts(period.from_ns, period.to_ns), *(day.from_ns for day in self.days)})

    def of(self, place: Place, paid: Paid, engine_id: str = "") -> Counter[Slice]:
        """GPU-nanoseconds by slice."""
        total: Counter[Slice] = Counter()
        inside = [border for border in self.borders if paid.from_ns < border < paid.to_ns]
        for start, end in pairwise([paid.from_ns, *inside, paid.to_ns]):
            rate = self.card.at(start // MINUTE_NS * MINUTE_NS, place.gpu_type, place.host, engine_id)
            total[Slice(_day_of(self.days, start), place, rate)] += (end - start) * paid.gpus
        return total


def clip(paid: Paid, window: Period | Span) -> Paid | None:
    """The part of paid time within a window, or None."""
    start, end = max(paid.from_ns, window.from_ns), min(paid.to_ns, window.to_ns)
    return Paid(start, end, paid.gpus) if start < end else None


def stack(paid: Sequence[Paid]) -> list[Paid]:
    """Overlapping stretches added up into disjoint ones, in order; gaps stay gaps."""
    change: Counter[int] = Counter()
    for part in paid:
        change[part.from_ns] += part.gpus
        change[part.to_ns] -= part.gpus
    result: list[Paid] = []
    gpus = 0
    for start, end in pairwise(sorted(change)):
        gpus += change[start]
        if gpus:
            result.append(Paid(start, end, gpus))
    return result


def _check(capacity: Capacity) -> None:
    name = f"capacity of {capacity.host} ({capacity.gpu_type})"
    if capacity.gpus < 1:
        raise CapacityError(f"the {name} needs at least 1 GPU, not {capacity.gpus}")
    if capacity.from_ns % MINUTE_NS or (capacity.to_ns or 0) % MINUTE_NS:
        raise CapacityError(f"the {name} must start and end on whole minutes")
    if capacity.to_ns is not None and capacity.to_ns < capacity.from_ns:
        raise CapacityError(f"the {name} ends before it begins")


def _declared(period: Period, capacities: Sequence[Capacity]) -> dict[Place, list[Paid]]:
    found: defaultdict[Place, list[Paid]] = defaultdict(list)
    for capacity in capacities:
        end = period.to_ns if capacity.to_ns is None else capacity.to_ns
        part = clip(Paid(capacity.from_ns, end, capacity.gpus), period)
        if part:
            found[Place(capacity.host, capacity.gpu_type)].append(part)
    return {place: stack(paid) for place, paid in sorted(found.items())}


def _outside(wall: Paid, declared: Sequence[Paid]) -> Iterator[Paid]:
    """The parts of a wall at which nothing is declared."""
    start = wall.from_ns
    for paid in declared:
        if start < min(paid.from_ns, wall.to_ns):
            yield Paid(start, min(paid.from_ns, wall.to_ns), wall.gpus)
        start = max(start, min(paid.to_ns, wall.to_ns))
    if start < wall.to_ns:
        yield Paid(start, wall.to_ns, wall.gpus)


def _day_of(days: Sequence[Span], at_ns: int) -> int:
    return next(number for number, day in enumerate(days) if at_ns < day.to_ns)
