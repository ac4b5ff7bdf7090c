"""Explain: why one period's bill differs from another's, in effects that sum to the difference exactly."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from ..errors import InputError
from .effects import Effect, Traffic, Usage, other_effects, tenant_effects
from .explain_sides import Asked, differing_methods, sides_of
from .explain_text import headline, render, to_json
from .explanation import Change, ExplainBy, Explanation
from .rating import IdlePolicy
from .report import Report
from .riders import seat_costs

if TYPE_CHECKING:
    from .books import Books
    from .cell import PricedCell
    from .periods import Period

__all__ = ["Explanation", "explain", "headline", "render", "to_json"]

_FIELDS: dict[ExplainBy, str] = {
    "tenant": "tenant_id",
    "team": "team",
    "model": "model",
    "tier": "tier",
    "host": "host",
    "engine": "engine_id",
}
_ACCOUNTS: dict[str, Effect] = {
    "idle": "idle",
    "overhead": "overhead",
    "underfill": "underfill",
    "unobserved": "unobserved",
    "correction": "correction",
}


def explain(
    books: Books,
    a: Period,
    b: Period,
    by: ExplainBy = "tenant",
    idle_policy: IdlePolicy | None = None,
    rate: Decimal | None = None,
    currency: str | None = None,
    policy: str = "roofline",
    now_ns: int | None = None,
) -> Explanation:
    """Why the bill of period `b` differs from that of `a`, by tenant, team, model, tier, host or engine.

    A closed period is compared as it was closed, one that is not over until `now_ns` (UTC, by default the time of day).
    `policy` is that of the books' ledger. Raises InputError for another `by`, for a period that has not begun, or where
    the periods are billed in different currencies.
    """
    if by not in _FIELDS:
        raise InputError(f"cannot explain by {by}; choose from {', '.join(_FIELDS)}")
    sides = sides_of(books, (a, b), Asked(idle_policy, rate, currency), policy, now_ns)
    before, after = (side.report for side in sides)
    priced = all(_is_priced(report) for report in (before, after))
    if priced and before.currency != after.currency:
        raise InputError(f"one period is in {before.currency}, the other in {after.currency}: name one with --currency")
    usages = [_usages(side.cells, by, priced=priced) for side in sides]
    changes = [_change(key, *(usage.get(key) or Usage() for usage in usages)) for key in {**usages[0], **usages[1]}]
    changes.sort(key=lambda change: (change.account != "tenant", -abs(change.difference), change.name))
    unit = before.currency if priced else None
    notes = tuple(note for note in (*(side.note for side in sides), differing_methods(sides)) if note)
    is_provisional = any(side.is_provisional for side in sides)
    return Explanation(before, after, by, unit, tuple(changes), seat_costs(books.runs), notes, is_provisional)


def _is_priced(report: Report) -> bool:
    return all(cell.amount_micro is not None for cell in report.cells)


def _usages(cells: Sequence[PricedCell], by: ExplainBy, *, priced: bool) -> dict[tuple[str, str], Usage]:
    """What each tenant (or …) and account used, by (account, name)."""
    usages: dict[tuple[str, str], Usage] = defaultdict(Usage)
    for cell in cells:
        account = "correction" if cell.correction_of else cell.account
        is_tenant = account == "tenant"
        usage = usages[account, (getattr(cell, _FIELDS[by]) or "") if is_tenant else ""]
        usage.value += cell.amount_micro or 0 if priced else cell.gpu_ns
        usage.idle += cell.idle_micro or 0 if priced else 0
        if priced:
            usage.rated_ns[cell.rate or "0"] += cell.gpu_ns
        usage.streams[cell.tier, cell.model] += _traffic(cell)
    return usages


def _traffic(cell: PricedCell) -> Traffic:
    in_prefill = cell.phase == "prefill"
    return Traffic(
        cell.requests,
        cell.prompt_tokens,
        cell.cached_tokens,
        cell.output_tokens,
        cell.gpu_ns if in_prefill else 0,
        0 if in_prefill else cell.gpu_ns,
    )


def _change(key: tuple[str, str], before: Usage, after: Usage) -> Change:
    account, name = key
    if account == "tenant":
        return Change(account, name, before, after, tenant_effects(before, after))
    return Change(account, name, before, after, other_effects(_ACCOUNTS[account], before, after))
