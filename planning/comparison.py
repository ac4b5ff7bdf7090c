"""The comparison: before and after a scenario, per tenant and in total, with what both add up to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..costing.line import Line
from ..costing.rating import half_even
from .baseline import Baseline, baseline_of
from .live import as_it_was, under
from .outcome import Outcome, Waits
from .replay import OnTick
from .scenario import Scenario
from .traffic import Recorded

if TYPE_CHECKING:
    from ..storage.store import Store

MONTH_NS = 730 * 3_600_000_000_000
"""An average month."""


@dataclass(frozen=True)
class TenantSide:
    """A tenant on one side: its line of the bill (null: it has none) and how long its requests took."""

    line: Line | None
    waits: Waits


@dataclass(frozen=True)
class Comparison:
    """What a scenario changes. Amounts are micro-units of `currency`, null without a rate."""

    recorded: Recorded
    scenario: Scenario
    baseline: Baseline
    before: Outcome
    after: Outcome

    @property
    def currency(self) -> str:
        """Currency of both bills."""
        return self.before.bill.currency

    @cached_property
    def tenants(self) -> dict[str, tuple[TenantSide, TenantSide]]:
        """Every tenant before and after."""
        return {
            tenant: (self._side(self.before, tenant), self._side(self.after, tenant))
            for tenant in self.recorded.tenants
        }

    @cached_property
    def waits(self) -> tuple[Waits, Waits]:
        """How long everybody's requests took."""
        return self.before.waits(None, self.scenario.slos), self.after.waits(None, self.scenario.slos)

    @property
    def saved_micro(self) -> int | None:
        """Off the invoice: before minus after; negative when it gets dearer."""
        if self.before.total_micro is None or self.after.total_micro is None or not self.is_whole:
            return None
        return self.before.total_micro - self.after.total_micro

    @property
    def saved_busy_micro(self) -> int | None:
        """Less for time in steps and loading."""
        if self.before.busy_micro is None or self.after.busy_micro is None or not self.is_whole:
            return None
        return self.before.busy_micro - self.after.busy_micro

    @property
    def freed_gpu_ns(self) -> int:
        """GPU time in steps less."""
        return self.before.steps.busy_gpu_ns - self.after.steps.busy_gpu_ns

    @property
    def is_whole(self) -> bool:
        """Whether all time of both sides has a rate: else a difference would compare unlike things."""
        return self.before.is_whole and self.after.is_whole and self.before.bill.currency == self.after.bill.currency

    def monthly(self, amount: int) -> int:
        """An amount of the recorded time as one of a month of 730 hours."""
        return per_month(amount, self.recorded)

    def notes(self) -> list[str]:
        """What a reader must know to trust the figures, in sentences."""
        found: list[str] = []
        if not self.is_whole and self.before.bill.is_priced:
            found.append("some GPUs of the scenario have no price: give one, as --set price=2.49 or NAME:…,price=2.49")
        if not self.before.bill.is_priced:
            found.append(
                "the store has no rates, so there is GPU time and no money: farebox rates add STORE --price 4.29"
            )
        if self.recorded.unknown:
            found.append(f"{self.recorded.unknown:,} requests do not tell their lengths and are left out")
        if self.recorded.unserved:
            found.append(
                f"{self.recorded.unserved:,} requests are left out: no engine is recorded that was up and served them"
            )
        if self.recorded.has_capacities:
            found.append("declared GPUs that no engine runs on cost the same on both sides and are left out")
        return [*found, *self.problems()]

    def problems(self) -> list[str]:
        """What does not add up on either side; empty when both ledgers equal their walls and both bills their lines."""
        sides = (("before", self.before), ("after", self.after))
        return [f"{name}: {problem}" for name, outcome in sides for problem in outcome.bill.check()]

    def _side(self, outcome: Outcome, tenant: str) -> TenantSide:
        return TenantSide(outcome.line(tenant), outcome.waits(tenant, self.scenario.slos))


def per_month(amount: int, recorded: Recorded) -> int:
    """An amount of the recorded time as one of a month of 730 hours, rounded half to even."""
    return half_even(amount * MONTH_NS, max(recorded.to_ns - recorded.from_ns, 1))


def compare(
    store: Store, recorded: Recorded, scenario: Scenario, on_tick: Callable[[str], OnTick | None] = lambda _: None
) -> Comparison:
    """Replay recorded traffic as it was and under a scenario; `on_tick` is asked for what is told of each replay."""
    scenario.check(recorded)
    before = as_it_was(recorded, on_tick("as it was"))
    after = before if scenario.is_empty else under(recorded, scenario, on_tick("changed"))
    return Comparison(recorded, scenario, baseline_of(store, recorded, before), before, after)
