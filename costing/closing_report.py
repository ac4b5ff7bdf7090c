"""A closed bill as a report again: from what was frozen, not from what the ledger holds now."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from ..events import Budget, Closing, Rate
from .budgets import BudgetStatus
from .closing_cells import cells_from_json, content_of, thaw
from .conflicts import Conflict
from .line import By, lines_of
from .periods import Period
from .places import PlaceTime
from .report import Report, Unpriced

_SAME = ("is_priced", "wall_gpu_ns", "invoice_micro", "labels", "seen_ns")
"""Fields of a report that are JSON values as they are."""
_TEXTS = ("remarks", "other_api_currencies")
"""Fields that are tuples of texts."""


def freeze_report(report: Report) -> dict[str, Any]:
    """What a report tells beside its cells and settings (plain JSON values)."""
    return {
        **{name: getattr(report, name) for name in (*_SAME, *_TEXTS)},
        "rates": [rate._asdict() for rate in report.rates],
        "basis": [[name, f"{share:f}"] for name, share in report.basis],
        "places": [place._asdict() for place in report.places],
        "conflicts": [conflict._asdict() for conflict in report.conflicts],
        "unpriced": [each._asdict() for each in report.unpriced],
        "budgets": [status._asdict() | {"budget": status.budget._asdict()} for status in report.budgets],
    }


def thaw_report(closing: Closing) -> Report:
    """The bill of a closed period as it was closed; raises InputError as `thaw`."""
    frozen, content = thaw(closing), content_of(closing)
    told: dict[str, Any] = content["report"]
    same: dict[str, Any] = {name: told[name] for name in _SAME} | {name: tuple(told[name]) for name in _TEXTS}
    table = cells_from_json(content["cells"])
    lines = lines_of(table, frozen.by, frozen.idle_policy, told["is_priced"])
    return Report(
        **same,
        by=frozen.by,
        period=Period(closing.period, frozen.tz, closing.from_ns, closing.to_ns),
        idle_policy=frozen.idle_policy,
        policy=frozen.policy,
        rates=tuple(Rate(**rate) for rate in told["rates"]),
        card=frozen.rates,
        prices=frozen.prices,
        currency=frozen.currency,
        lines=lines.lines,
        tenants=lines.tenants,
        total=lines.total,
        basis=tuple((name, Decimal(share)) for name, share in told["basis"]),
        places=tuple(PlaceTime(**place) for place in told["places"]),
        conflicts=tuple(_conflict(each) for each in told["conflicts"]),
        api_currency=frozen.api_currency,
        unpriced=tuple(Unpriced(**each) for each in told["unpriced"]),
        budgets=tuple(_status(each) for each in told["budgets"]),
        closed_as=None,
        cell_table=table,
    )


def _conflict(told: dict[str, Any]) -> Conflict:
    fields: dict[str, Any] = told | {name: tuple(told[name]) for name in ("runs", "gpu_uuids")}
    return Conflict(**fields)


def _status(told: dict[str, Any]) -> BudgetStatus:
    fields: dict[str, Any] = told | {"budget": Budget(**told["budget"])}
    return BudgetStatus(**fields)


def can_group(closing: Closing, by: tuple[By, ...]) -> bool:
    """Whether the frozen lines can be grouped by these columns: by hours only where they were closed by hours."""
    return "hour" not in by or "hour" in thaw(closing).by


def grouped(closing: Closing, by: tuple[By, ...]) -> Report:
    """The bill of a closed period with its frozen lines grouped otherwise, which changes no amount."""
    report = thaw_report(closing)
    lines = lines_of(report.cell_table, by, report.idle_policy, report.is_priced)
    remark = (
        f"{closing.period} is closed: the bill that stands is the one it was closed with; these are its lines, by"
        f" {', '.join(by)}."
    )
    return replace(
        report,
        by=by,
        lines=lines.lines,
        tenants=lines.tenants,
        total=lines.total,
        closed_as=closing.period,
        remarks=(remark, *report.remarks),
    )
