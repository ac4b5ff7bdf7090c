"""Reports as files: CSV for spreadsheets, JSON for programs, Parquet for notebooks.

All hold the finest lines and no total row in their midst, so the sum of a column is the invoice.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from .periods import utc_text
from .rating import money_text
from .report import Line, Report

if TYPE_CHECKING:
    from .marginal_view import Marginal

FORMULA_STARTS = tuple("=+-@＝＋－＠")
"""What starts a formula in a spreadsheet, also after blanks and in full width."""
CONTROL_STARTS = ("\t", "\r", "\n")
NO_RATE = "no rate"
NO_PRICE = "no price"
_NUMBERS = ("requests", "prompt_tokens", "cached_tokens", "output_tokens", "gpu_ns")
_MONEY = ("amount_micro", "loaded_micro", "billed_micro", "api_micro")
_GAPS = ("unrated_gpu_ns", "unpriced_tokens")
_PRICES = ("per_1k", "per_1k_loaded", "per_1k_out")
_parquet: Any = pq


def to_csv(report: Report) -> str:
    """The lines as CSV: money as decimal text with 6 places, unknown values empty, their reason in `note`.

    The bill is the column `billed`: `amount` alone, or with idle where the idle policy spreads it. A text cell that a
    spreadsheet would run as a formula gets a leading apostrophe.
    """
    money = ["amount", "amount_loaded", "billed", "currency", "api_amount", "api_currency"]
    signal = [] if report.marginal is None else ["marginal_gpu_ns", "marginal_amount"]
    header = ["account", *report.by, *_NUMBERS, "share", *money, *_PRICES, "per_1k_unit", *signal, "note"]
    rows = [header, *(_csv_cells(report, line) for line in report.lines)]
    return "".join(_csv_row(cells) for cells in rows)


def _csv_row(cells: Sequence[str]) -> str:
    """One line of CSV; the writer's own line end makes it quote carriage returns within a cell."""
    row = io.StringIO()
    csv.writer(row, lineterminator="\r\n").writerow(cells)
    return row.getvalue().removesuffix("\r\n") + "\n"


def _csv_cells(report: Report, line: Line) -> list[str]:
    amount, loaded, billed, api = (_money(getattr(line, name)) for name in _MONEY)
    prices = [_text(getattr(line, name)) for name in _PRICES]
    counts = [str(getattr(line, name)) for name in _NUMBERS]
    names = [plain(text) for text in (line.account, *line.keys)]
    currency = plain(report.currency) if report.is_priced else ""
    money = [amount, loaded, billed, currency, api, plain(report.api_currency or "") if api else ""]
    note = "; ".join(reasons(report, line))
    signal = [] if report.marginal is None else _signal(report.marginal.of(line))
    return [*names, *counts, _text(line.share), *money, *prices, plain(report.unit), *signal, note]


def _signal(told: Marginal | None) -> list[str]:
    gpu_ns, amount = (None, None) if told is None else (told.gpu_ns, told.amount_micro)
    return ["" if gpu_ns is None else str(gpu_ns), _money(amount)]


def reasons(report: Report, line: Line) -> list[str]:
    """Why a line's amounts are missing or only lower bounds, in words."""
    found: list[str] = []
    if line.unrated_gpu_ns:
        found.append(NO_RATE if line.amount_micro is None else f"{NO_RATE} for {line.unrated_gpu_ns} GPU·ns")
    elif not report.is_priced:
        found.append(NO_RATE)
    if report.unpriced and line.unpriced_tokens:
        found.append(NO_PRICE if line.api_micro is None else f"{NO_PRICE} for {line.unpriced_tokens} tokens")
    told = None if report.marginal is None else report.marginal.of(line)
    return [*found, told.reason] if told is not None and told.reason else found


def plain(text: str) -> str:
    """Text that no spreadsheet runs as a formula."""
    is_formula = text.lstrip().startswith(FORMULA_STARTS)
    return f"'{text}" if is_formula or text.startswith(CONTROL_STARTS) else text


def _money(amount: int | None) -> str:
    return "" if amount is None else money_text(amount)


def _text(value: Decimal | None) -> str:
    return "" if value is None else f"{value:f}"


def to_json(report: Report) -> str:
    """The whole report as one JSON object: amounts in micro-units, decimals as text, unknown values null."""
    document = {
        "period": report.period.name,
        "tz": report.period.tz,
        "from": utc_text(report.from_ns),
        "to": utc_text(report.to_ns),
        "by": report.by,
        "policy": report.policy,
        "idle_policy": report.idle_policy,
        "currency": report.currency,
        "rate_per_gpu_hour": None if report.rate is None else f"{report.rate:f}",
        "per_1k_unit": report.unit,
        "rates": [rate._asdict() for rate in report.rates],
        "reason": None if report.is_priced else NO_RATE,
        "lines": [_record(report, line) for line in report.lines],
        "tenants": _record(report, report.tenants),
        "total": _record(report, report.total),
        "wall_gpu_ns": report.wall_gpu_ns,
        "invoice_micro": report.invoice_micro,
        "residual_gpu_ns": report.residual_gpu_ns,
        "residual_micro": report.residual_micro,
        "basis": {basis: _text(share) for basis, share in report.basis},
        "places": [place._asdict() for place in report.places],
        "conflicts": [conflict._asdict() for conflict in report.conflicts],
        "api_currency": report.api_currency,
        "unpriced": [each._asdict() for each in report.unpriced],
        "budgets": [status._asdict() | {"budget": status.budget._asdict()} for status in report.budgets],
        "closed_as": report.closed_as,
        "labels": report.labels,
        "problems": report.check(),
        "notes": report.notes(),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _record(report: Report, line: Line) -> dict[str, str | int | None]:
    record: dict[str, str | int | None] = {"account": line.account, **dict(zip(report.by, line.keys, strict=True))}
    record |= {name: getattr(line, name) for name in (*_NUMBERS, *_MONEY, *_GAPS)}
    decimals: Iterable[tuple[str, Decimal | None]] = ((name, getattr(line, name)) for name in ("share", *_PRICES))
    record |= {name: None if value is None else f"{value:f}" for name, value in decimals}
    return record if report.marginal is None else record | _signals(report.marginal.of(line))


def _signals(told: Marginal | None) -> dict[str, str | int | None]:
    """What would go away with a line, and why that is not known."""
    gpu_ns, amount, reason = told or (None, None, "")
    return {"marginal_gpu_ns": gpu_ns, "marginal_micro": amount, "marginal_reason": reason or None}


def to_parquet(report: Report) -> bytes:
    """The lines as a Parquet file; everything else of the report is in the schema's metadata as JSON.

    Amounts are int64 micro-units, shares and prices decimal128 with 6 places.
    """
    decimal = pa.decimal128(38, 6)
    kinds: dict[str, Any] = dict.fromkeys(("account", *report.by), pa.string())
    kinds |= dict.fromkeys((*_NUMBERS, *_MONEY, *_GAPS), pa.int64())
    kinds |= dict.fromkeys(("share", *_PRICES), decimal)
    columns: list[Any] = [pa.array([line.account for line in report.lines], pa.string())]
    columns += [pa.array([line.keys[i] for line in report.lines], pa.string()) for i in range(len(report.by))]
    for name in list(kinds)[len(columns) :]:
        columns.append(pa.array([getattr(line, name) for line in report.lines], kinds[name]))
    if report.marginal is not None:
        rows = [_signals(report.marginal.of(line)) for line in report.lines]
        kinds |= {name: pa.string() if name == "marginal_reason" else pa.int64() for name in _signals(None)}
        columns += [pa.array([row[name] for row in rows], kinds[name]) for name in _signals(None)]
    schema: Any = pa.schema(list(kinds.items()), metadata={"farebox.report": _summary(report)})
    file = io.BytesIO()
    _parquet.write_table(pa.Table.from_arrays(columns, schema=schema), file)
    return file.getvalue()


def _summary(report: Report) -> str:
    document = json.loads(to_json(report))
    del document["lines"]
    return json.dumps(document, ensure_ascii=False)
