"""A sweep: several values of one setting, each replayed on a core of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..storage.store import open_store
from .baseline import Baseline, baseline_of
from .change import ALIASES
from .errors import PlanError
from .outcome import Outcome, Waits
from .pool import live_all
from .scenario import Scenario, change_of, merged_change
from .slo import Slo
from .traffic import Recorded

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
    for value in values:
        at = scenario_at(scenario, key, value)
        at.check(recorded)
        for run in recorded.runs:
            at.change.apply(run.config)
    own = _recorded_value(recorded, scenario, key, values)
    asked = [value for value in values if value != own]
    scenarios = [Scenario(slos=scenario.slos), *(scenario_at(scenario, key, value) for value in asked)]
    done = live_all(recorded, scenarios, _keep, on_done)
    baseline = done.get(0)
    found = {value: done[number].point for number, value in enumerate(asked, start=1) if number in done}
    if own is not None and baseline is not None:
        found[own] = baseline.point
    points = tuple(found[value]._replace(value=value) for value in values if value in found)
    missing = tuple(value for value in values if value not in found)
    currency = next((each.currency for each in done.values()), None)
    return Sweep(key, None if baseline is None else baseline.baseline, points, missing, currency)


class _Done(NamedTuple):
    point: Point
    baseline: Baseline | None
    currency: str | None


def _recorded_value(recorded: Recorded, scenario: Scenario, key: str, values: Sequence[str]) -> str | None:
    """The value that all engines were recorded with, where nothing else changes: its replay is the baseline's."""
    if not scenario.is_empty:
        return None
    had = {str(getattr(run.config, ALIASES.get(key, key), None)) for run in recorded.runs}
    return next((value for value in values if had == {value}), None)


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
    )
