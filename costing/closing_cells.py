"""Frozen bills: the cells of a closed period and all that priced them, as JSON and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ..errors import InputError
from ..events import Capacity, Closing, Rate, TeamRename, Tenant, TokenPrice
from .cell import SCHEMA, PricedCell, cells_from_arrow
from .line import By
from .published import EXTRA
from .rating import IdlePolicy

if TYPE_CHECKING:
    from .books import Books
    from .report import Report

FORMAT = 2
"""Version of the content's layout."""
_RECORDS: dict[str, Any] = {
    "rates": Rate,
    "capacities": Capacity,
    "tenants": Tenant,
    "renames": TeamRename,
    "prices": TokenPrice,
}
_KINDS: dict[str, Any] = {
    **{field.name: field.type for field in SCHEMA},
    **{name: pa.string() if name == "hour" else pa.int64() for name in EXTRA},
}


class Frozen(NamedTuple):
    """What a closed bill was made of."""

    cells: tuple[PricedCell, ...]
    rates: tuple[Rate, ...]
    capacities: tuple[Capacity, ...]
    tenants: tuple[Tenant, ...]
    renames: tuple[TeamRename, ...]
    prices: tuple[TokenPrice, ...]
    tz: str
    by: tuple[By, ...]
    idle_policy: IdlePolicy
    policy: str
    rate: str | None
    """The price of a GPU-hour that was given for this bill; null: the rates that were kept then."""
    currency: str
    api_currency: str | None

    def is_asked(
        self,
        by: Sequence[By] | None,
        idle_policy: IdlePolicy | None,
        rate: Decimal | None,
        currency: str | None,
        policy: str | None,
    ) -> bool:
        """Whether a bill made this way is the one that was closed; null: whatever it was closed with."""
        return (
            by in (None, self.by)
            and idle_policy in (None, self.idle_policy)
            and (rate is None or (self.rate is not None and Decimal(self.rate) == rate))
            and currency in (None, self.currency)
            and policy in (None, self.policy)
        )


def cells_to_json(cells: pa.Table) -> dict[str, Any]:
    """Published cells as a JSON object of `columns` and `rows`; the same cells give the same object."""
    columns = [cells.column(name).to_pylist() for name in _KINDS]
    return {"columns": list(_KINDS), "rows": [list(row) for row in zip(*columns, strict=True)]}


def cells_from_json(document: dict[str, Any]) -> pa.Table:
    """The inverse of `cells_to_json`; raises ValueError for an object that is none of its."""
    if set(document["columns"]) != set(_KINDS):
        raise ValueError(f"these are no cells: they have the columns {', '.join(document['columns'])}")
    columns: list[Any] = list(zip(*document["rows"], strict=True)) or [()] * len(_KINDS)
    values = dict(zip(document["columns"], columns, strict=True))
    arrays: list[Any] = [pa.array(values[name], kind) for name, kind in _KINDS.items()]
    return pa.Table.from_arrays(arrays, names=list(_KINDS))


def freeze(report: Report, books: Books, rate: Decimal | None = None) -> dict[str, Any]:
    """The part of a closing's content from which the bill and later corrections are made (plain JSON values).

    `rate` is the price of a GPU-hour that was given for this bill alone.
    """
    settings = {"capacities": books.capacities, "tenants": books.tenants, "renames": books.renames}
    records = {"rates": report.card, "prices": report.prices, **settings}
    return {
        "format": FORMAT,
        "cells": cells_to_json(report.cell_table),
        "settings": {name: [record._asdict() for record in rows] for name, rows in records.items()},
        "method": {
            "tz": report.period.tz,
            "by": report.by,
            "idle_policy": report.idle_policy,
            "policy": report.policy,
            "rate": None if rate is None else f"{rate:f}",
            "currency": report.currency,
            "api_currency": report.api_currency,
        },
    }


@lru_cache(maxsize=64)
def thaw(closing: Closing) -> Frozen:
    """What `freeze` put into a closing's content; raises InputError for a layout that this version does not know."""
    content = content_of(closing)
    settings = {name: tuple(kind(**row) for row in content["settings"][name]) for name, kind in _RECORDS.items()}
    method = content["method"] | {"by": tuple(content["method"]["by"])}
    return Frozen(cells_from_arrow(cells_from_json(content["cells"])), **settings, **method)


def content_of(closing: Closing) -> dict[str, Any]:
    """A closing's content as JSON values; raises InputError for a layout that this version does not know."""
    content = json.loads(closing.content)
    if content.get("format") != FORMAT:
        raise InputError(
            f"{closing.period} was closed by another version of Farebox, in a layout that this one does not know:"
            " reopen it (farebox report reopen) and close it again"
        )
    return content
