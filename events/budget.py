"""A budget: what a team means to spend in a period, and how it stands."""

from typing import Annotated, Literal, NamedTuple

from .table import Table, col

Standing = Literal["within", "above soft", "above hard", "unknown"]


class Budget(NamedTuple):
    """A team's limits for one period. Amounts are integer micro-units of the currency."""

    team: Annotated[str, col("", "the team")]
    period: Annotated[str, col("", "the period: a year, month or day as 2026, 2026-10 or 2026-10-05")]
    tz: Annotated[str, col("", "IANA zone whose midnights bound the period")]
    currency: Annotated[str, col("", "ISO 4217 code")]
    soft_micro: Annotated[int | None, col("10⁻⁶ currency", "warn above; null: no soft limit")]
    hard_micro: Annotated[int | None, col("10⁻⁶ currency", "broken above; null: no hard limit")]
    set_ns: Annotated[int, col("UTC ns", "when it was set")]


class BudgetState(NamedTuple):
    """How a budget stood when it was last looked at: what screens show, which do not price a ledger themselves."""

    team: Annotated[str, col("", "the team")]
    period: Annotated[str, col("", "the budget's period")]
    tz: Annotated[str, col("", "IANA zone whose midnights bound the period")]
    currency: Annotated[str, col("", "ISO 4217 code")]
    spent_micro: Annotated[int | None, col("10⁻⁶ currency", "billed so far; null: not known, see `reason`")]
    per_day_micro: Annotated[int | None, col("10⁻⁶ currency/d", "burn rate since the period began; null: not known")]
    soft_micro: Annotated[int | None, col("10⁻⁶ currency", "the soft limit; null: none")]
    hard_micro: Annotated[int | None, col("10⁻⁶ currency", "the hard limit; null: none")]
    soft_day: Annotated[str | None, col("", "local day on which soft is reached at this pace; null: not within it")]
    hard_day: Annotated[str | None, col("", "local day on which hard is reached at this pace; null: not within it")]
    state: Annotated[str, col("", "within, above soft, above hard or unknown")]
    reason: Annotated[str | None, col("", "why spending is not known; null: it is")]
    seen_ns: Annotated[int, col("UTC ns", "spending is known until here")]


BUDGETS = Table("budgets", Budget, key=("team", "period", "tz"), time="set_ns", sort=("team", "period", "tz"))
BUDGET_STATES = Table(
    "budget_states", BudgetState, key=("team", "period", "tz"), time="seen_ns", sort=("team", "period", "tz")
)
