"""Frozen bills: the cells of a closed period and all that priced them, as JSON and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..events import Capacity, Closing, Rate, Tenant, TokenPrice
from .cell import PricedCell
from .rating import IdlePolicy

if TYPE_CHECKING:
    from .books import Books
    from .report import Report

_RECORDS: dict[str, Any] = {"rates": Rate, "capacities": Capacity, "tenants": Tenant, "prices": TokenPrice}


class Frozen(NamedTuple):
    """What a closed bill was made of."""

    cells: tuple[PricedCell, ...]
    rates: tuple[Rate, ...]
    capacities: tuple[Capacity, ...]
    tenants: tuple[Tenant, ...]
    prices: tuple[TokenPrice, ...]
    tz: str
    idle_policy: IdlePolicy
    policy: str


def cells_to_json(cells: Iterable[PricedCell]) -> str:
    """Cells as a JSON object of `columns` and `rows`; the same cells give the same text."""
    return json.dumps({"columns": PricedCell._fields, "rows": list(cells)}, ensure_ascii=False, separators=(",", ":"))


def cells_from_json(text: str) -> tuple[PricedCell, ...]:
    """The inverse of `cells_to_json`; raises ValueError for a text that is none of its."""
    document = json.loads(text)
    columns = document["columns"]
    if set(columns) != set(PricedCell._fields):
        raise ValueError(f"these are no cells: they have the columns {', '.join(columns)}")
    return tuple(PricedCell(**dict(zip(columns, row, strict=True))) for row in document["rows"])


def freeze(report: Report, books: Books) -> dict[str, Any]:
    """The part of a closing's content from which later corrections are computed (plain JSON values)."""
    settings = {"capacities": books.capacities, "tenants": books.tenants, "prices": books.prices}
    records = {"rates": report.card, **settings}
    return {
        "cells": json.loads(cells_to_json(report.cells)),
        "settings": {name: [record._asdict() for record in rows] for name, rows in records.items()},
        "method": {"tz": report.period.tz, "idle_policy": report.idle_policy, "policy": report.policy},
    }


def thaw(closing: Closing) -> Frozen:
    """What `freeze` put into a closing's content."""
    content = json.loads(closing.content)
    settings = {name: tuple(kind(**row) for row in content["settings"][name]) for name, kind in _RECORDS.items()}
    method = content["method"]
    cells = cells_from_json(json.dumps(content["cells"]))
    return Frozen(cells, **settings, tz=method["tz"], idle_policy=method["idle_policy"], policy=method["policy"])
