"""An explanation: what every tenant and account cost in two periods, and the effects between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from .effects import Effect, Usage, without_zeros
from .figures import Figures
from .report import Report

ExplainBy = Literal["tenant", "team", "model", "tier", "host", "engine"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)
GPU_NS = "GPU·ns"


@dataclass(frozen=True, slots=True)
class Change:
    """One tenant (or team, model, …) or account in both periods. Amounts are in the explanation's `unit`."""

    account: str
    name: str
    """Its key; empty on accounts that are no tenant's."""
    before: Usage
    after: Usage
    effects: dict[Effect, int]
    """Their sum is `difference`; effects of 0 are left out."""

    @property
    def amount_before(self) -> int:
        """What it cost in the first period, its part of idle included."""
        return self.before.value + self.before.idle

    @property
    def amount_after(self) -> int:
        """What it cost in the second period."""
        return self.after.value + self.after.idle

    @property
    def difference(self) -> int:
        """What the second period cost more."""
        return self.amount_after - self.amount_before


@dataclass(frozen=True)
class Explanation:
    """Why the bill changed: changes by tenant and account, largest difference first."""

    a: Report
    b: Report
    by: ExplainBy
    currency: str | None
    """Null: at least one period has no rate, so amounts are GPU-nanoseconds instead of micro-units."""
    changes: tuple[Change, ...]
    seat_costs: dict[str, int]
    """By model: GPU-nanoseconds of a decode step that all its riders share; no entry without a step model."""
    notes: tuple[str, ...]
    """What a reader must know of the two bills, in sentences."""
    is_provisional: bool
    """Whether one of the periods is not over."""

    @property
    def unit(self) -> str:
        """Unit of the amounts."""
        return GPU_NS if self.currency is None else f"10⁻⁶ {self.currency}"

    @cached_property
    def amount_before(self) -> int:
        """The first period's bill."""
        return sum(change.amount_before for change in self.changes)

    @cached_property
    def amount_after(self) -> int:
        """The second period's bill."""
        return sum(change.amount_after for change in self.changes)

    @property
    def difference(self) -> int:
        """What the second period's bill is more."""
        return self.amount_after - self.amount_before

    @cached_property
    def effects(self) -> dict[Effect, int]:
        """All changes' effects together, in the order of the walk; they sum to `difference`."""
        return sum_effects(self.changes)

    def requests(self) -> tuple[int, int]:
        """Requests in both periods."""
        before, after = (sum(usage.total.requests for usage in side) for side in self._sides())
        return before, after

    def _sides(self) -> tuple[list[Usage], list[Usage]]:
        tenants = [change for change in self.changes if change.account == "tenant"]
        return [change.before for change in tenants], [change.after for change in tenants]

    @cached_property
    def figures(self) -> Figures:
        """How its amounts are written for people."""
        return Figures.for_total(self.currency, max(self.amount_before, self.amount_after))


def sum_effects(changes: Sequence[Change]) -> dict[Effect, int]:
    """Effects of several changes together, in the order of the walk; those of 0 are left out."""
    totals: dict[Effect, int] = {name: sum(change.effects.get(name, 0) for change in changes) for name in EFFECTS}
    return without_zeros(totals)
