"""FOCUS: the bill in the FinOps Open Cost and Usage Specification 1.2, with the allocation columns of 1.3.

The origin charge is what a host's GPUs of one type cost in one slice (a day at one rate); every row is an allocated
charge that says which account it went to. Rows of one origin share its dimensions and its unit price; their costs and
quantities sum to it, and their AllocatedRatios to 1. Idle time that a policy spreads is a row of its own per tenant.
"""

from __future__ import annotations

import csv
import io
import json
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import groupby, islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputError
from .apportion import apportion, round_together
from .focus_columns import COLUMNS, FocusKind
from .formats import plain
from .periods import utc_text
from .rating import HOUR_NS, exact_price, money_text

if TYPE_CHECKING:
    from .cell import PricedCell
    from .report import Report

FocusRow = dict[str, str | None]
PLACES = 12
"""Decimal places of ratios, unit prices and GPU-hours."""
ISSUER = "Self-hosted"
BATCH = 50_000
COSTS = ("BilledCost", "EffectiveCost", "ContractedCost", "ListCost")
"""Without discounts or prepayments all four are the same."""
_NOT_ALLOCATED: FocusRow = dict.fromkeys(("AllocatedMethodId", "AllocatedMethodDetails", "AllocatedResourceId"))
_arrow: Any = pa
_parquet: Any = pq
_KINDS: dict[FocusKind, Any] = {
    "String": pa.string(),
    "JSON": pa.string(),
    "Decimal": pa.decimal128(38, PLACES),
    "Date/Time": pa.timestamp("s", "UTC"),
}


class Charge(NamedTuple):
    """One allocated charge: a cell's own time, or what it pays for an idle cell's."""

    origin: PricedCell
    """The cell whose host, time and rate are charged."""
    payer: PricedCell
    gpu_ns: int
    amount_micro: int

    @property
    def is_own(self) -> bool:
        """Whether the payer pays its own time."""
        return self.origin is self.payer


def to_focus_csv(report: Report) -> str:
    """The bill as FOCUS CSV; null is an empty field. Raises InputError where something has no rate."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\r\n")
    kinds: dict[str, FocusKind] = {column.name: column.kind for column in COLUMNS}
    writer.writerow(kinds)
    for row in focus_rows(report):
        writer.writerow(_safe(kinds[name], value) for name, value in row.items())
    return page.getvalue()


def to_focus_parquet(report: Report) -> bytes:
    """The bill as a FOCUS Parquet file: decimals with 12 places, UTC timestamps. Raises InputError without a rate."""
    schema: Any = pa.schema([pa.field(column.name, _KINDS[column.kind], column.nullable) for column in COLUMNS])
    rows = focus_rows(report)
    file = io.BytesIO()
    with _parquet.ParquetWriter(file, schema) as writer:
        while batch := list(islice(rows, BATCH)):
            columns: list[Any] = [_array(column.kind, [row[column.name] for row in batch]) for column in COLUMNS]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
    return file.getvalue()


def focus_rows(report: Report) -> Iterator[FocusRow]:
    """The rows as column → text (null: None), origin by origin; corrections of closed periods among them by day."""
    unpriced = next((cell for cell in report.cells if cell.amount_micro is None), None)
    if unpriced is not None:
        what = f"{unpriced.gpu_type} on {unpriced.host or 'no host'}, {unpriced.day}"
        raise InputError(
            f"no rate holds for {what}, and FOCUS needs one: add it with `farebox rates add`, or give --rate"
        )
    if not report.cells:
        return
    common = _common(report)
    place_days = groupby(sorted(report.cells, key=_place_day), key=_place_day)
    for _, cells in place_days:
        charges = sorted(_charges(list(cells)), key=lambda charge: _origin(charge.origin))
        for _, group in groupby(charges, key=lambda charge: _origin(charge.origin)):
            yield from _allocated(common, list(group))


def _place_day(cell: PricedCell) -> tuple[str, ...]:
    return cell.correction_of, cell.day, cell.host, cell.gpu_type


def _origin(cell: PricedCell) -> tuple[str, ...]:
    """What identifies the origin charge: a host's GPUs of one type, on one day, at one rate."""
    return *_place_day(cell), utc_text(cell.from_ns), cell.rate or ""


def _charges(cells: Sequence[PricedCell]) -> Iterator[Charge]:
    """The charges of one place and day. Idle cost that moved is charged from where it left to where it went.

    What leaves and what arrives add up within a place and day, and are matched first come, first served. Corrections
    are differences: each is one charge.
    """
    gains = deque((cell, cell.idle_micro) for cell in cells if cell.idle_micro and cell.idle_micro > 0)
    for cell in cells:
        amount, moved = cell.amount_micro or 0, cell.idle_micro or 0
        if cell.correction_of:
            yield Charge(cell, cell, cell.gpu_ns, amount + moved)
            continue
        parts = [(cell, amount + min(moved, 0)), *(_taken(gains, -moved) if moved < 0 else ())]
        weights = [part for _, part in parts] if amount > 0 else [1, *(0 for _ in parts[1:])]
        for (payer, part), gpu_ns in zip(parts, apportion(cell.gpu_ns, weights), strict=True):
            if part or gpu_ns:
                yield Charge(cell, payer, gpu_ns, part)


def _taken(gains: deque[tuple[PricedCell, int]], amount: int) -> Iterator[tuple[PricedCell, int]]:
    """Take `amount` from the front of the gains; yields who pays which part of it."""
    while amount:
        payer, gain = gains.popleft()
        part = min(gain, amount)
        if gain > part:
            gains.appendleft((payer, gain - part))
        amount -= part
        yield payer, part


def _allocated(common: FocusRow, charges: Sequence[Charge]) -> Iterator[FocusRow]:
    """The rows of one origin charge; their quantities and ratios are rounded together."""
    total = sum(charge.gpu_ns for charge in charges)
    hours = round_together([Fraction(charge.gpu_ns * 10**PLACES, HOUR_NS) for charge in charges])
    ratios: Sequence[int | None] = [None] * len(charges)
    if total:
        ratios = round_together([Fraction(charge.gpu_ns * 10**PLACES, total) for charge in charges])
    shared = common | _origin_columns(charges[0].origin)
    for charge, hour, ratio in zip(charges, hours, ratios, strict=True):
        row = shared | _cost_columns(charge, hour) | _own_columns(charge)
        yield row | (_NOT_ALLOCATED if ratio is None else _allocation_columns(charge, ratio))


def _common(report: Report) -> FocusRow:
    """What all rows share, in the order of the file; the rest is filled in later."""
    row: FocusRow = dict.fromkeys(column.name for column in COLUMNS)
    row |= dict.fromkeys(("ProviderName", "PublisherName", "InvoiceIssuerName"), ISSUER)
    row |= dict.fromkeys(("HostProviderName", "ServiceProviderName"), ISSUER)
    row |= dict.fromkeys(("BillingCurrency", "PricingCurrency"), report.currency)
    row |= {"BillingPeriodStart": utc_text(report.from_ns), "BillingPeriodEnd": utc_text(report.to_ns)}
    return row | {
        "BillingAccountId": "self-hosted",
        "ChargeCategory": "Usage",
        "ChargeFrequency": "Usage-Based",
        "PricingCategory": "Standard",
        "PricingUnit": "GPU-Hours",
        "ConsumedUnit": "GPU-Seconds",
        "ServiceCategory": "AI and Machine Learning",
        "ServiceName": "LLM inference",
        "ServiceSubcategory": "Generative AI",
        "ResourceType": "GPU host",
        "SkuMeter": "GPU time",
    }


def _origin_columns(cell: PricedCell) -> FocusRow:
    """What an origin charge is for: the dimensions and the unit price that its allocated charges share."""
    price = exact_price(cell.rate or "0")
    return {
        "ChargeClass": "Correction" if cell.correction_of else None,
        "ChargeDescription": f"{cell.gpu_type} GPUs of {cell.host} on {cell.day} at {cell.rate} per GPU-hour"
        + (f", correction of {cell.correction_of}" if cell.correction_of else ""),
        "ChargePeriodStart": utc_text(cell.from_ns),
        "ChargePeriodEnd": utc_text(cell.to_ns),
        "ContractedUnitPrice": money_text(round(price * 10**PLACES), PLACES),
        "ResourceId": f"{cell.host}/{cell.gpu_type}",
        "ResourceName": cell.host or None,
        "SkuId": cell.gpu_type,
        "SkuPriceId": f"{cell.gpu_type}@{cell.rate}",
        "x_OriginChargeId": "/".join(_origin(cell)).strip("/"),
    }


def _cost_columns(charge: Charge, hours: int) -> FocusRow:
    row: FocusRow = dict.fromkeys(COSTS, money_text(charge.amount_micro))
    return row | {
        "PricingQuantity": money_text(hours, PLACES),
        "ConsumedQuantity": money_text(charge.gpu_ns, 9),
    }


def _own_columns(charge: Charge) -> FocusRow:
    """Farebox's own columns. What was asked and answered is told once, with the payer's own time."""
    cell, own = charge.payer, charge.is_own
    return {
        "x_Account": charge.origin.account,
        "x_EngineId": charge.origin.engine_id or None,
        "x_TenantId": cell.tenant_id or None,
        "x_Team": cell.team or None,
        "x_Tier": cell.tier or None,
        "x_Model": cell.model or None,
        "x_Phase": cell.phase or None,
        "x_Basis": charge.origin.basis or None,
        "x_PromptTokens": _count(cell.prompt_tokens if own else 0),
        "x_CachedTokens": _count(cell.cached_tokens if own else 0),
        "x_OutputTokens": _count(cell.output_tokens if own else 0),
        "x_Requests": _count(cell.requests if own else 0),
    }


def _allocation_columns(charge: Charge, ratio: int) -> FocusRow:
    """Who got the charge, and by what measure."""
    cell = charge.payer
    is_tenant = cell.account == "tenant"
    tags = {"account": charge.origin.account} | ({"team": cell.team} if is_tenant and cell.team else {})
    quantity, share = money_text(charge.gpu_ns, 9), money_text(ratio, PLACES)
    element = f'{{"AllocatedRatio": {share}, "UsageUnit": "GPU-Seconds", "UsageQuantity": {quantity}}}'
    return {
        "AllocatedMethodId": "gpu-time" if charge.is_own else "idle-time",
        "AllocatedMethodDetails": f'{{"Elements": [{element}]}}',
        "AllocatedResourceId": f"tenant/{cell.tenant_id}" if is_tenant else cell.account,
        "AllocatedResourceName": cell.tenant_id if is_tenant else cell.account.capitalize(),
        "AllocatedTags": json.dumps(tags, ensure_ascii=False),
    }


def _count(value: int) -> str:
    return f"{value}.0"


def _safe(kind: FocusKind, value: str | None) -> str:
    """A field of the CSV; text that a spreadsheet would run is neutralised, numbers are numbers."""
    return "" if value is None else value if kind == "Decimal" else plain(value)


def _array(kind: FocusKind, values: list[str | None]) -> Any:
    parse = {"Decimal": Decimal, "Date/Time": datetime.fromisoformat}.get(kind, str)
    parsed: Any = [None if value is None else parse(value) for value in values]
    return _arrow.array(parsed, _KINDS[kind])
