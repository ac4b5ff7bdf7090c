"""Budgets: what a team has spent of its limits, how fast, and when they will be spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..events import Budget, Standing
from .periods import Period, local, zone_of
from .rating import half_even

DAY_NS = 86_400_000_000_000


class BudgetStatus(NamedTuple):
    """A budget and how it stands. Amounts are micro-units of its currency."""

    budget: Budget
    from_ns: int
    to_ns: int
    seen_ns: int
    """Spending is known until here, UTC."""
    spent_micro: int | None
    """What the team was billed so far; null where time has no rate, which `reason` says."""
    per_day_micro: int | None
    """Burn rate over what is seen of the period; null before its start."""
    soft_day: str | None
    """The local day on which the soft limit is reached at this pace; null: not within the period, or no limit."""
    hard_day: str | None
    state: Standing
    reason: str | None


def budget_period(budget: Budget) -> Period:
    """The budget's own period, in its own zone."""
    return Period.parse(budget.period, budget.tz)


def status_of(budget: Budget, spent_micro: int | None, currency: str, seen_ns: int) -> BudgetStatus:
    """How a budget stands when its team was billed `spent_micro` until `seen_ns` (UTC).

    What was spent is unknown where some time has no rate, and where the bill is in another currency.
    """
    reason = "some of its time has no rate" if spent_micro is None else None
    if spent_micro is not None and currency != budget.currency:
        reason = f"the budget is in {budget.currency}, the bill in {currency}: there is no conversion rate"
        spent_micro = None
    period = budget_period(budget)
    seen = min(max(seen_ns, period.from_ns), period.to_ns)
    elapsed = seen - period.from_ns
    pace = None if spent_micro is None or not elapsed else half_even(spent_micro * DAY_NS, elapsed)
    soft, hard = (_day(limit, spent_micro, period, elapsed) for limit in (budget.soft_micro, budget.hard_micro))
    state = _state(budget, spent_micro)
    return BudgetStatus(budget, period.from_ns, period.to_ns, seen, spent_micro, pace, soft, hard, state, reason)


def overlapping(budgets: Sequence[Budget], period: Period) -> list[tuple[Budget, Period]]:
    """The budgets whose own periods share time with a report's, in the order of their teams."""
    own = [(budget, budget_period(budget)) for budget in sorted(budgets, key=lambda b: (b.team, b.period, b.tz))]
    return [(budget, p) for budget, p in own if p.from_ns < period.to_ns and period.from_ns < p.to_ns]


def _state(budget: Budget, spent: int | None) -> Standing:
    if spent is None:
        return "unknown"
    if budget.hard_micro is not None and spent > budget.hard_micro:
        return "above hard"
    return "above soft" if budget.soft_micro is not None and spent > budget.soft_micro else "within"


def _day(limit: int | None, spent: int | None, period: Period, elapsed: int) -> str | None:
    """The local day on which a limit is reached if spending goes on as since the period's start."""
    if limit is None or not spent or not elapsed:
        return None
    at = period.from_ns + limit * elapsed // spent
    return local(at, zone_of(period.tz)).date().isoformat() if at < period.to_ns else None
