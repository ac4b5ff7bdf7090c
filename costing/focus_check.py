"""Does a FOCUS file keep its rules? Types, nulls and enums of each row, and allocations that add up."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from .focus_columns import COLUMNS, FocusColumn, FocusKind

Row = Mapping[str, str | None]
_NAMES = {column.name for column in COLUMNS}
_DECIMAL = re.compile(r"-?\d+\.\d+")
_INSTANT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
_CURRENCY = re.compile(r"[A-Z]{3}")
_ALLOCATED = ("AllocatedMethodDetails", "AllocatedResourceId")
_PAIRS = (("PricingQuantity", "PricingUnit"), ("ConsumedQuantity", "ConsumedUnit"))
_SPANS = (("BillingPeriodStart", "BillingPeriodEnd"), ("ChargePeriodStart", "ChargePeriodEnd"))
_NEVER_NULL_ON_USAGE = ("PricingCategory", "PricingQuantity", "ConsumedQuantity", "SkuId", "SkuPriceId")


def check(rows: Iterable[Row]) -> list[str]:
    """What is wrong with FOCUS rows (column → text; empty or None is null), each sentence with its row from 1."""
    problems: list[str] = []
    ratios: dict[str, Fraction] = defaultdict(Fraction)
    for number, row in enumerate(rows, 1):
        found = list(_row_problems(row))
        problems += [f"row {number}: {problem}" for problem in found]
        if row.get("AllocatedMethodId") and not any("AllocatedMethodDetails" in problem for problem in found):
            ratios[row.get("x_OriginChargeId") or ""] += _ratio(row)
    problems += [
        f"{origin}: its AllocatedRatios sum to {float(ratio)}, not 1" for origin, ratio in ratios.items() if ratio != 1
    ]
    return problems


def _row_problems(row: Row) -> Iterator[str]:
    for column in COLUMNS:
        if column.name not in row:
            yield f"{column.name} is missing"
        else:
            yield from _value_problems(column, row[column.name])
    unknown = (name for name in row if name not in _NAMES and not name.startswith("x_"))
    yield from (f"{name} is no FOCUS column; own ones begin with x_" for name in unknown)
    yield from _row_rules(row)


def _value_problems(column: FocusColumn, value: str | None) -> Iterator[str]:
    if not value:
        if not column.nullable:
            yield f"{column.name} is null"
    elif not _KINDS[column.kind](value):
        yield f"{column.name} is no {column.kind}: {value!r}"
    elif column.allowed and value not in column.allowed:
        yield f"{column.name} is none of {', '.join(column.allowed)}: {value!r}"
    elif column.name.endswith("Currency") and not _CURRENCY.fullmatch(value):
        yield f"{column.name} is no ISO 4217 code: {value!r}"
    elif column.name.endswith("UnitPrice") and value.startswith("-"):
        yield f"{column.name} is negative: {value}"


def _row_rules(row: Row) -> Iterator[str]:
    """What columns demand of each other."""
    for start, end in _SPANS:
        if row.get(start) and row.get(end) and str(row[start]) >= str(row[end]):
            yield f"{end} is not after {start}"
    for quantity, unit in _PAIRS:
        if bool(row.get(quantity)) != bool(row.get(unit)):
            yield f"{quantity} and {unit} are null only together"
    if row.get("ChargeCategory") == "Usage" and not row.get("ChargeClass"):
        yield from (f"{name} is null on usage" for name in _NEVER_NULL_ON_USAGE if not row.get(name))
    for name in _ALLOCATED:
        if bool(row.get("AllocatedMethodId")) != bool(row.get(name)):
            yield f"AllocatedMethodId and {name} are null only together"
    if row.get("AllocatedMethodDetails") and not _details(row):
        yield 'AllocatedMethodDetails has no "Elements" with an AllocatedRatio'


def _is_json(value: str) -> bool:
    try:
        return isinstance(json.loads(value), dict)
    except ValueError:
        return False


def _is_instant(value: str) -> bool:
    if not _INSTANT.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


_KINDS: dict[FocusKind, Callable[[str], object]] = {
    "String": lambda value: value == value.strip(),
    "Decimal": _DECIMAL.fullmatch,
    "Date/Time": _is_instant,
    "JSON": _is_json,
}


def _details(row: Row) -> list[Decimal]:
    """The AllocatedRatios of a row, exact; empty where the object is not as it should be."""
    try:
        document: Any = json.loads(row.get("AllocatedMethodDetails") or "", parse_float=Decimal, parse_int=Decimal)
        ratios = [element["AllocatedRatio"] for element in document["Elements"]]
    except (ValueError, KeyError, TypeError):
        return []
    return ratios if all(isinstance(ratio, Decimal) for ratio in ratios) else []


def _ratio(row: Row) -> Fraction:
    return sum((Fraction(ratio) for ratio in _details(row)), Fraction(0))
