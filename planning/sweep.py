"""A sweep: several values of one setting, each replayed on a core of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..collector.bulk import can_jump
from ..storage.store import open_store
from .baseline import Baseline, baseline_of
from .change import ALIASES
from .errors import PlanError
from .outcome import Outcome, Waits
from .pool import live_all
from .scenario import Scenario, change_of, merged_change
from .slo import Slo
from .traffic import Recorded

SEATS = "max_num_seqs"
KNEE_LEAST = 3
"""A curve of fewer points has no knee."""


class Point(NamedTuple):
    """One value and what it comes to. Amounts are micro-units, null without a rate."""

    value: str
    busy_micro: int | None
    """What time in steps and loading costs."""
    total_micro: int | None
    busy_gpu_ns: int
    """Time in steps."""
    wall_gpu_ns: int
    """Time that engines were up."""
    waits: Waits
    preemptions: int
    recomputed_tokens: int
    occupancy: float | None
    most_riders: int
    """The most that rode in one step."""
    same_as: str | None = None
    """The value whose replay this is, too: neither number of seats was ever reached; null: its own."""

    @property
    def cost(self) -> int:
        """What the curve shows: busy money, or busy GPU time where nothing has a rate."""
        return self.busy_gpu_ns if self.busy_micro is None else self.busy_micro


@dataclass(frozen=True)
class Sweep:
    """The points in the order asked for; `missing` values were interrupted."""

    key: str
    baseline: Baseline | None
    """Null when it was interrupted."""
    points: tuple[Point, ...]
    missing: tuple[str, ...]
    currency: str | None
    """Currency of the amounts; null: no rate."""

    @property
    def cheapest(self) -> int | None:
        """Index of the cheapest point; null without points."""
        return min(range(len(self.points)), key=lambda at: self.points[at].cost, default=None)

    @property
    def knee(self) -> int | None:
        """Index of the point before the cheapest where the curve bends most: further ones save little.

        It is the one furthest below the straight line from the first point to the cheapest, both axes scaled to 0…1
        (Satopää et al., "Finding a Kneedle in a Haystack", 2011). Null for curves that do not fall.
        """
        last = self.cheapest
        if last is None or last + 1 < KNEE_LEAST or self.points[0].cost == self.points[last].cost:
            return None
        first, low = self.points[0].cost, self.points[last].cost
        below = [1 - at / last - (self.points[at].cost - low) / (first - low) for at in range(last + 1)]
        return max(range(last + 1), key=lambda at: below[at])

    @property
    def rises(self) -> int | None:
        """Index of the first point after the cheapest that costs more and preempts more; null: none does."""
        low = self.cheapest
        if low is None:
            return None
        best = self.points[low]
        later = range(low + 1, len(self.points))
        return next((at for at in later if _is_worse(self.points[at], best)), None)


def _is_worse(point: Point, best: Point) -> bool:
    return point.cost > best.cost and point.preemptions > best.preemptions


def parse_sweep(text: str) -> tuple[str, tuple[str, ...]]:
    """Read `max_num_seqs=8,16,32`; PlanError unless it is a key with two values or more."""
    key, equals, values = text.partition("=")
    found = tuple(dict.fromkeys(value.strip() for value in values.split(",") if value.strip()))
    if not equals or not key.strip() or len(found) < 2:
        raise PlanError(f'--sweep "{text}": write a setting with several values, as max_num_seqs=8,16,32')
    return key.strip(), found


def scenario_at(scenario: Scenario, key: str, value: str) -> Scenario:
    """The scenario with one setting; PlanError or FleetError for one that cannot be."""
    return replace(scenario, change=merged_change(scenario.change, change_of([f"{key}={value}"])))


def sweep(
    recorded: Recorded, scenario: Scenario, key: str, values: Sequence[str], on_done: Callable[[int], None]
) -> Sweep:
    """Replay the traffic under every value, all cores at once; an interruption keeps what is done.

    `on_done` gets the number of replays done. Raises as `under` does for a value that cannot be.
    """
    shares = _shares_replays(recorded, scenario, key, values)
    own = _recorded_value(recorded, key) if scenario.is_empty else None
    replayed = [own, *_in_order([value for value in values if value != own], own)]
    scenarios = [Scenario(slos=scenario.slos), *(scenario_at(scenario, key, value) for value in replayed[1:] if value)]

    def known(done: dict[int, _Done]) -> list[Point]:
        return [each.point._replace(value=value) for n, each in done.items() if (value := replayed[n]) is not None]

    def is_spared(number: int, done: dict[int, _Done]) -> bool:
        return shares and number > 0 and _shared(replayed[number] or "", known(done)) is not None

    done = live_all(recorded, scenarios, _keep, on_done, is_spared)
    found = {point.value: point for point in known(done)}
    if shares:
        found |= {value: point for value in values if value not in found and (point := _shared(value, known(done)))}
    baseline = done.get(0)
    points = tuple(found[value] for value in values if value in found)
    missing = tuple(value for value in values if value not in found)
    currency = next((each.currency for each in done.values()), None)
    return Sweep(key, None if baseline is None else baseline.baseline, points, missing, currency)


def _shares_replays(recorded: Recorded, scenario: Scenario, key: str, values: Sequence[str]) -> bool:
    """Whether values that are never reached come to the same: numbers of seats of engines which everybody on board
    rides in every step of. Raises as `under` does for a value that cannot be.
    """
    found = key == SEATS and not scenario.endpoints and not scenario.targeted
    for value in values:
        at = scenario_at(scenario, key, value)
        at.check(recorded)
        for run in recorded.runs:
            found &= can_jump(at.change.apply(run.config))
    return found


def _shared(value: str, points: Iterable[Point]) -> Point | None:
    """The point of a number of seats, told by that of another where neither was ever reached; None: none tells it."""
    seats = int(value)
    for point in points:
        own = int(point.value)
        if point.most_riders < min(own, seats):
            occupancy = None if point.occupancy is None else point.occupancy * own / seats
            return point._replace(value=value, same_as=point.value, occupancy=occupancy)
    return None


def _in_order(values: Sequence[str], own: str | None) -> list[str]:
    """Of numbers first the largest, which may tell others, unless `own` does; then those that take longest, the
    smallest.
    """
    if not values or not all(value.isdigit() for value in values):
        return list(values)
    rising = sorted(values, key=int)
    if own is not None and own.isdigit() and int(own) > int(rising[-1]):
        return rising
    return [rising[-1], *rising[:-1]]


class _Done(NamedTuple):
    point: Point
    baseline: Baseline | None
    currency: str | None


def _recorded_value(recorded: Recorded, key: str) -> str | None:
    """The value that all engines were recorded with; None: they differ, or nobody recorded it."""
    had = {getattr(run.config, ALIASES.get(key, key), None) for run in recorded.runs}
    return None if len(had) != 1 or None in had else str(had.pop())


def _keep(recorded: Recorded, scenario: Scenario, outcome: Outcome) -> _Done:
    """What a sweep keeps of a replay; of the one as it was also how far it is from the recording."""
    point = _point_of(outcome, scenario.slos)
    if not scenario.is_empty:
        return _Done(point, None, _currency(outcome))
    with open_store(recorded.store) as store:
        return _Done(point, baseline_of(store, recorded, outcome), _currency(outcome))


def _currency(outcome: Outcome) -> str | None:
    return outcome.bill.currency if outcome.bill.is_priced else None


def _point_of(outcome: Outcome, slos: Sequence[Slo]) -> Point:
    """What a value's replay comes to."""
    steps = outcome.steps
    return Point(
        "",
        outcome.busy_micro if outcome.is_whole else None,
        outcome.total_micro if outcome.is_whole else None,
        steps.busy_gpu_ns,
        outcome.usage.wall_gpu_ns,
        outcome.waits(None, slos),
        steps.preemptions,
        steps.recomputed_tokens,
        outcome.usage.occupancy,
        steps.most_riders,
    )
