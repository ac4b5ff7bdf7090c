"""The rows of a comparison, the same for table, JSON and HTML."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from ..costing.figures import Figures
from ..costing.line import ACCOUNTS, Line
from .comparison import Comparison
from .outcome import Outcome, Waits
from .words import percent_text, price_text, wait_text

WAIT_HEADS = ("TTFT p50", "p99", "TPOT p50", "p99", "in SLO")
"""Names of the last of `cells_of`."""


class Side(NamedTuple):
    """A row on one side. Null where there is nothing: no rate, no token, no such line."""

    requests: int | None
    gpu_ns: int | None
    amount_micro: int | None
    per_1k: Decimal | None
    """Per 1000 tokens of busy time; GPU-ms without a rate."""
    per_1k_loaded: Decimal | None
    """The same with its part of idle time."""
    waits: Waits | None
    """Null for what nobody waits for."""

    def value(self, figures: Figures) -> int | None:
        """What a table shows: money, or GPU time where nothing has a rate."""
        return self.gpu_ns if figures.currency is None else self.amount_micro


class PlanRow(NamedTuple):
    """A tenant, another account, or the total, before and after."""

    kind: str
    """tenant, total, or the account."""
    name: str
    before: Side
    after: Side


def rows_of(comparison: Comparison) -> list[PlanRow]:
    """Tenants by what they cost before, then the other accounts, the total last."""
    alike = comparison.before.bill.unit == comparison.after.bill.unit
    tenants = [
        PlanRow("tenant", name, _side(before.line, before.waits), _side(after.line, after.waits, alike=alike))
        for name, (before, after) in comparison.tenants.items()
    ]
    tenants.sort(key=lambda row: (-(row.before.gpu_ns or 0), row.name))
    others = [
        PlanRow(
            account,
            account,
            _side(comparison.before.bill.account(account), None),
            _side(comparison.after.bill.account(account), None),
        )
        for account in ACCOUNTS[1:]
    ]
    shown = [row for row in others if row.before.gpu_ns or row.after.gpu_ns or row.kind == "idle"]
    waits = comparison.waits
    total = PlanRow(
        "total", "total", _total(comparison.before, waits[0]), _total(comparison.after, waits[1], alike=alike)
    )
    return [*tenants, *shown, total]


def _side(line: Line | None, waits: Waits | None, *, alike: bool = True) -> Side:
    """A line's figures; its prices only where both sides have them in one unit (`alike`)."""
    if line is None:
        return Side(0, 0, None, None, None, waits)
    prices = (line.per_1k, line.per_1k_loaded) if alike else (None, None)
    return Side(line.requests, line.gpu_ns, line.amount_micro, *prices, waits)


def _total(outcome: Outcome, waits: Waits, *, alike: bool = True) -> Side:
    total, tenants = outcome.bill.total, outcome.bill.tenants
    prices = (tenants.per_1k, tenants.per_1k_loaded) if alike else (None, None)
    return Side(total.requests, total.gpu_ns, total.amount_micro, *prices, waits)


def cells_of(side: Side, figures: Figures) -> list[str]:
    """Requests, amount, both prices per 1000 tokens, and what WAIT_HEADS names, as texts; only the amount where nobody
    waits.
    """
    value, waits = side.value(figures), side.waits
    amount = "no price" if value is None else figures.text(value)
    if waits is None:
        return ["", amount, *[""] * 7]
    places = 3 if figures.currency is None else 6
    return [
        f"{side.requests or 0:,}",
        amount,
        price_text(side.per_1k, places),
        price_text(side.per_1k_loaded, places),
        *map(wait_text, waits.latencies),
        percent_text(waits.within),
    ]
