"""By what the tenant list can be sorted, and which tenants a filter leaves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .snapshot import TenantRow


@dataclass(frozen=True)
class Order:
    """A column to sort by; the highest first, but names from A to Z."""

    key: str
    title: str
    of: Callable[[TenantRow], float]


ORDERS: tuple[Order, ...] = (
    Order("gpu", "GPU %", lambda row: row.gpu_ns),
    Order("per_1k", "cost per 1k", lambda row: float(row.per_1k or 0)),
    Order("tokens", "tokens", lambda row: row.prompt_tokens + row.output_tokens),
    Order("out", "output tokens", lambda row: row.output_tokens),
    Order("cached", "cached part", lambda row: row.cached_tokens / row.prompt_tokens if row.prompt_tokens else 0),
    Order("riding", "riding", lambda row: row.riding),
    Order("name", "name", lambda _: 0),
)


def order_of(key: str | None) -> Order:
    """The order of that key, or the first."""
    return next((order for order in ORDERS if order.key == key), ORDERS[0])


def next_order(key: str, by: int = 1) -> Order:
    """The order after (or before) one."""
    keys = [order.key for order in ORDERS]
    return ORDERS[(keys.index(order_of(key).key) + by) % len(ORDERS)]


def arranged(rows: Sequence[TenantRow], order: Order, wanted: str) -> list[int]:
    """Numbers of the rows whose name or tier has `wanted` in it (in any case), in an order."""
    text = wanted.casefold()
    kept = [i for i, row in enumerate(rows) if text in row.tenant_id.casefold() or text == row.tier.casefold()]
    return sorted(kept, key=lambda i: (-order.of(rows[i]), rows[i].tenant_id, rows[i].tier))
