"""A budget: what a team means to spend in a period."""

from typing import Annotated, NamedTuple

from .table import Table, col


class Budget(NamedTuple):
    """A team's limits for one period. Amounts are integer micro-units of the currency."""

    team: Annotated[str, col("", "the team")]
    period: Annotated[str, col("", "the period: a year, month or day as 2026, 2026-10 or 2026-10-05")]
    tz: Annotated[str, col("", "IANA zone whose midnights bound the period")]
    currency: Annotated[str, col("", "ISO 4217 code")]
    soft_micro: Annotated[int | None, col("10⁻⁶ currency", "warn above; null: no soft limit")]
    hard_micro: Annotated[int | None, col("10⁻⁶ currency", "broken above; null: no hard limit")]
    set_ns: Annotated[int, col("ns", "when it was set, UTC")]


BUDGETS = Table("budgets", Budget, key=("team", "period", "tz"), time="set_ns", sort=("team", "period", "tz"))
