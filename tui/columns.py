"""The columns of the tenant table, and which of them fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len

from . import money
from .budgets import role_of, spent_percent
from .line import Role
from .numbers import count, per_second, percent, share

if TYPE_CHECKING:
    from .snapshot import Snapshot, TenantRow

NAME_MIN, NAME_MAX = 14, 28
DISPENSABLE = 7


@dataclass(frozen=True)
class Column:
    """A right-aligned column: `tell` gives a tenant's cell.

    Where the terminal is narrow, the column with the highest `rank` goes first.
    """

    key: str
    title: str
    width: int
    role: Role
    rank: int
    tell: Callable[[TenantRow, Snapshot], str]
    shade: Callable[[TenantRow], Role] | None = None
    """The role of a tenant's cell, where it depends on what is in it."""

    def role_for(self, tenant: TenantRow) -> Role:
        """How a tenant's cell is painted."""
        return self.shade(tenant) if self.shade else self.role


def fitting(snapshot: Snapshot, width: int) -> list[Column]:
    """The columns that fit into `width` cells beside a name, in the order in which they are shown.

    The last of them to be needed also make way for a name that would be cut.
    """
    shown = _every(snapshot)
    while shown and NAME_MIN + width_of(shown, 1) > width:
        shown.remove(max(shown, key=lambda c: c.rank))
    while longest_name(snapshot) > width - width_of(shown, 1) and any(c.rank >= DISPENSABLE for c in shown):
        shown.remove(max(shown, key=lambda c: c.rank))
    return shown


def longest_name(snapshot: Snapshot) -> int:
    """Cells that the longest tenant name with its tier mark takes, of those that are not unreasonably long."""
    return max((min(NAME_MAX, cell_len(t.tenant_id + mark(t))) for t in snapshot.tenants), default=0)


def mark(tenant: TenantRow) -> str:
    """The tier behind a name, where it is not the standard one."""
    return "" if tenant.tier == "standard" else f" ({tenant.tier})"


def gap_for(width: int) -> int:
    """Space before each column: more of it on a wide terminal."""
    return 1 if width < 105 else 2 if width < 140 else 3


def width_of(columns: list[Column], gap: int) -> int:
    """Cells that columns take, with the space before each."""
    return sum(c.width + gap for c in columns)


def _every(snapshot: Snapshot) -> list[Column]:
    traffic = [
        Column("riding", "riding", 6, "good", 6, _riding),
        Column(
            "in", "in/s", 5, "prefill", 2, lambda t, s: per_second(s.known("prompt_tokens", t.prompt_tokens), s.wall_ns)
        ),
        Column("cached", "cached", 6, "", 5, _cached),
        Column(
            "out",
            "out/s",
            5,
            "decode",
            1,
            lambda t, s: per_second(s.known("output_tokens", t.output_tokens), s.wall_ns),
        ),
        Column("gpu", "GPU %", 5, "strong", 0, _together),
    ]
    return traffic + (_unpriced() if snapshot.unit == "GPU-ms" else _priced(snapshot)) + _budget(snapshot)


def _priced(snapshot: Snapshot) -> list[Column]:
    sign = money.sign(snapshot.unit).strip()
    return [
        Column("hourly", f"{sign}/h", max(6, len(sign) + 2), "money", 0, _together),
        *_per_1k(f"m{sign}/1k", lambda value: money.figure(value, milli=True)),
    ]


def _unpriced() -> list[Column]:
    return _per_1k("ms/1k", lambda value: money.figure(value, milli=False))


def _per_1k(title: str, text: Callable[[money.Decimal | None], str]) -> list[Column]:
    return [
        Column("per_1k", title, max(5, len(title)), "", 3, lambda t, _: text(t.per_1k)),
        Column("per_1k_full", "+idle", 5, "", 4, lambda t, _: text(t.per_1k_full)),
        Column("per_1k_out", "1k out", 6, "", 7, lambda t, _: text(t.per_1k_out)),
    ]


def _budget(snapshot: Snapshot) -> list[Column]:
    """A column only where a tenant's team has a budget."""
    if not any(tenant.budget for tenant in snapshot.tenants):
        return []
    return [Column("budget", "budget", 7, "", 8, lambda t, _: spent_percent(t.budget), lambda t: role_of(t.budget))]


def _together(_tenant: TenantRow, _snapshot: Snapshot) -> str:
    """Nothing: figures that have to add up are rounded together, by the board."""
    return ""


def _cached(tenant: TenantRow, snapshot: Snapshot) -> str:
    known = snapshot.known("cached_tokens", tenant.cached_tokens)
    return percent(None if known is None else share(known, tenant.prompt_tokens))


def _riding(tenant: TenantRow, _: Snapshot) -> str:
    return count(tenant.riding) if tenant.riding else "–"
