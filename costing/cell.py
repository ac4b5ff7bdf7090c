"""The finest published line of a bill."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa


class PricedCell(NamedTuple):
    """What one account used on one local day of a host's GPUs at one rate, and what it costs.

    Every report is a sum of these. Amounts are integer micro-units, null without a rate; what a cell is billed is
    `amount_micro + idle_micro`.
    """

    day: str
    """The local day, YYYY-MM-DD."""
    from_ns: int
    """Start of the day or of the rate within it, UTC."""
    to_ns: int
    """Its end, likewise."""
    host: str
    gpu_type: str
    engine_id: str
    """Empty for declared time without a run."""
    account: str
    """tenant, underfill, idle, overhead or unobserved."""
    tenant_id: str
    team: str
    """The team that paid for the tenant then; empty for what is no tenant's."""
    cost_centre: str
    """Likewise."""
    tier: str
    model: str
    phase: str
    basis: str
    """step, interval or estimated; empty for time that only a declaration or a reservation tells of."""
    gpu_ns: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    requests: int
    rate: str | None
    """Price of a GPU-hour, decimal text or p/q; null: no rate."""
    amount_micro: int | None
    """What the cell's own time costs."""
    idle_micro: int | None
    """Idle cost moved to it (or, on idle lines, away from it) by the idle policy; sums to 0."""
    api_micro: int | None
    """What its priced tokens would cost by the token; null: none of them has a price."""
    unpriced_tokens: int
    """Its tokens without a price."""
    correction_of: str
    """The closed period that it corrects; empty for the period's own time."""


NUMBERS = ("gpu_ns", "prompt_tokens", "cached_tokens", "output_tokens", "requests", "unpriced_tokens")
MONEY = ("amount_micro", "idle_micro", "api_micro")
NAMES = tuple(name for name in PricedCell._fields if name not in NUMBERS + MONEY)
"""What identifies a cell."""
_INTEGERS = {*NUMBERS, *MONEY, "from_ns", "to_ns"}
SCHEMA: Any = pa.schema([(name, pa.int64() if name in _INTEGERS else pa.string()) for name in PricedCell._fields])


def cells_to_arrow(cells: list[PricedCell]) -> pa.Table:
    """Cells as columns."""
    columns: Any = list(zip(*cells, strict=True)) or [()] * len(PricedCell._fields)
    arrays: list[Any] = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def cells_from_arrow(table: pa.Table) -> tuple[PricedCell, ...]:
    """Columns as cells; columns that no cell has are left out."""
    columns = (table.column(name).to_pylist() for name in PricedCell._fields)
    return tuple(PricedCell(*row) for row in zip(*columns, strict=True))
