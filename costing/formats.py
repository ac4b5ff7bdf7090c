"""Reports as files: CSV for spreadsheets, JSON for programs, Parquet for notebooks.

All hold the finest lines and no total row in their midst, so the sum of a column is the invoice.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .rating import money_text
from .report import NO_RATE, Line, Report

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_NUMBERS = ("requests", "prompt_tokens", "cached_tokens", "output_tokens", "gpu_ns")
_PRICES = ("per_1k", "per_1k_loaded", "per_1k_out")
_parquet: Any = pq


def to_csv(report: Report) -> str:
    """The lines as CSV: money as decimal text with 6 places, unknown values empty, their reason in `note`.

    A text cell that a spreadsheet would run as a formula gets a leading apostrophe.
    """
    header = ["account", *report.by, *_NUMBERS, "share", "amount", "amount_loaded", "currency"]
    rows = [[*header, *_PRICES, "per_1k_unit", "note"], *(_csv_cells(report, line) for line in report.lines)]
    return "".join(_csv_row(cells) for cells in rows)


def _csv_row(cells: Sequence[str]) -> str:
    """One line of CSV; the writer's own line end makes it quote carriage returns within a cell."""
    row = io.StringIO()
    csv.writer(row, lineterminator="\r\n").writerow(cells)
    return row.getvalue().removesuffix("\r\n") + "\n"


def _csv_cells(report: Report, line: Line) -> list[str]:
    money = [_money(line.amount_micro), _money(line.loaded_micro)]
    prices = [_text(getattr(line, name)) for name in _PRICES]
    counts = [str(getattr(line, name)) for name in _NUMBERS]
    currency, note = ("", NO_RATE) if report.rate is None else (plain(report.currency), "")
    names = [plain(text) for text in (line.account, *line.keys)]
    return [*names, *counts, _text(line.share), *money, currency, *prices, report.unit, note]


def plain(text: str) -> str:
    """Text that no spreadsheet runs as a formula."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def _money(amount: int | None) -> str:
    return "" if amount is None else money_text(amount)


def _text(value: Decimal | None) -> str:
    return "" if value is None else f"{value:f}"


def to_json(report: Report) -> str:
    """The whole report as one JSON object: amounts in micro-units, decimals as text, unknown values null."""
    document = {
        "from": instant(report.from_ns),
        "to": instant(report.to_ns),
        "by": report.by,
        "currency": report.currency,
        "rate_per_gpu_hour": None if report.rate is None else f"{report.rate:f}",
        "per_1k_unit": report.unit,
        "reason": NO_RATE if report.rate is None else None,
        "lines": [_record(report, line) for line in report.lines],
        "tenants": _record(report, report.tenants),
        "total": _record(report, report.total),
        "wall_gpu_ns": report.wall_gpu_ns,
        "invoice_micro": report.invoice_micro,
        "residual_gpu_ns": report.residual_gpu_ns,
        "residual_micro": report.residual_micro,
        "basis": {basis: _text(share) for basis, share in report.basis},
        "problems": report.check(),
        "notes": report.notes(),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _record(report: Report, line: Line) -> dict[str, str | int | None]:
    record: dict[str, str | int | None] = {"account": line.account, **dict(zip(report.by, line.keys, strict=True))}
    record |= {name: getattr(line, name) for name in (*_NUMBERS, "amount_micro", "loaded_micro")}
    decimals: Iterable[tuple[str, Decimal | None]] = ((name, getattr(line, name)) for name in ("share", *_PRICES))
    return record | {name: None if value is None else f"{value:f}" for name, value in decimals}


def to_parquet(report: Report, path: Path) -> None:
    """Write the lines to a Parquet file; everything else of the report is in the schema's metadata as JSON.

    Amounts are int64 micro-units, shares and prices decimal128 with 6 places.
    """
    decimal = pa.decimal128(38, 6)
    kinds: dict[str, Any] = dict.fromkeys(("account", *report.by), pa.string())
    kinds |= dict.fromkeys((*_NUMBERS, "amount_micro", "loaded_micro"), pa.int64())
    kinds |= dict.fromkeys(("share", *_PRICES), decimal)
    columns: list[Any] = [pa.array([line.account for line in report.lines], pa.string())]
    columns += [pa.array([line.keys[i] for line in report.lines], pa.string()) for i in range(len(report.by))]
    for name in list(kinds)[len(columns) :]:
        columns.append(pa.array([getattr(line, name) for line in report.lines], kinds[name]))
    schema: Any = pa.schema(list(kinds.items()), metadata={"farebox.report": _summary(report)})
    _parquet.write_table(pa.Table.from_arrays(columns, schema=schema), path)


def _summary(report: Report) -> str:
    document = json.loads(to_json(report))
    del document["lines"]
    return json.dumps(document, ensure_ascii=False)


def instant(at_ns: int) -> str:
    """UTC nanoseconds as YYYY-MM-DDTHH:MM:SSZ."""
    return datetime.fromtimestamp(at_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
