"""The books: everything that a bill is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from ..events import Budget, Capacity, Closing, Rate, Run, Tenant, TokenPrice


@dataclass(frozen=True)
class Books:
    """What was measured (the ledger and the runs) and what people set beside it.

    `ledger` has the LEDGER schema and must hold the whole of every period that is asked about.
    """

    ledger: pa.Table
    runs: tuple[Run, ...]
    rates: tuple[Rate, ...] = ()
    capacities: tuple[Capacity, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    prices: tuple[TokenPrice, ...] = ()
    budgets: tuple[Budget, ...] = ()
    closings: tuple[Closing, ...] = ()
