"""The tenant table as lines: a head, one row per tenant, and the time in which nobody rode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len

from ..costing.apportion import apportion
from . import money
from .columns import NAME_MAX, Column, fitting, gap_for, mark, width_of
from .glyphs import Glyphs, pad
from .hourly import hourly
from .line import Line, Role
from .numbers import SECOND_NS, share
from .widgets.bar import bar

if TYPE_CHECKING:
    from .snapshot import Snapshot, TenantRow

BAR_MIN, BAR_MAX = 12, 60


class Board:
    """One snapshot's tenant table at one width. What it shows per hour adds up to the price shown above it."""

    def __init__(self, snapshot: Snapshot, width: int, glyphs: Glyphs, *, bars: bool = True) -> None:
        self._snapshot = snapshot
        self._glyphs = glyphs
        self._columns = fitting(snapshot, width)
        self._gap = gap_for(width)
        room = width - width_of(self._columns, self._gap)
        self._name = max(1, min(NAME_MAX, room))
        self._hourly = _amounts(snapshot)
        self._percents = _percents(snapshot)
        room -= self._name + 2
        self._bar = min(room, BAR_MAX) if bars and room >= BAR_MIN else 0
        self._name += 0 if bars else max(0, room + 2)

    def head(self) -> Line:
        """The titles."""
        window = f"tenant, last {round(self._snapshot.wall_ns / SECOND_NS)} s"
        first = window if len(window) <= self._name else "tenant"
        titles = "".join(self._cell(c, c.title) for c in self._columns)
        return [(pad(first, self._name) + titles, "label")]

    def row(self, index: int) -> Line:
        """The line of tenant number `index`."""
        tenant = self._snapshot.tenants[index]
        line = self._who(tenant)
        for column in self._columns:
            shared = {"hourly": self._hourly[index], "gpu": self._percents[index]}.get(column.key)
            text = column.tell(tenant, self._snapshot) if shared is None else shared
            line.append((self._cell(column, text), column.role_for(tenant)))
        return line + self._share(tenant.gpu_ns, "good")

    def foot(self) -> Iterator[Line]:
        """Idle and overhead always, underfill and unobserved time when there was some."""
        accounts = self._snapshot.accounts
        riders = len(self._snapshot.tenants)
        told = zip(self._percents[riders:], self._hourly[riders:], strict=True)
        owners = ("idle", accounts.idle), ("overhead", accounts.overhead)
        others = ("underfill", accounts.underfill), ("unobserved", accounts.unobserved)
        for (name, gpu_ns), (percent, amount) in zip((*owners, *others), told, strict=True):
            if gpu_ns or name in ("idle", "overhead"):
                yield self._nobody(name, gpu_ns, percent, amount)

    def _who(self, tenant: TenantRow) -> Line:
        tier = self._glyphs.name(mark(tenant))
        tier = tier if cell_len(tier) < self._name - 4 else ""
        name = self._glyphs.fit(tenant.tenant_id, self._name - cell_len(tier))
        space = " " * (self._name - cell_len(name) - cell_len(tier))
        return [(name, "strong" if tenant.riding else ""), (tier + space, "warn" if tenant.tier == "fast" else "label")]

    def _nobody(self, name: str, gpu_ns: int, percent: str, amount: str) -> Line:
        cells = {"gpu": percent, "hourly": amount}
        role: Role = "warn" if name == "idle" else "bad" if name == "unobserved" else "label"
        told = "".join(self._cell(c, cells.get(c.key, "")) for c in self._columns)
        return [(pad(name, self._name) + told, role), *self._share(gpu_ns, role)]

    def _cell(self, column: Column, text: str) -> str:
        return " " * self._gap + f"{self._glyphs.text(text):>{column.width}}"

    def _share(self, gpu_ns: int, role: Role) -> Line:
        """A bar of the part of the GPU time, where the terminal is wide."""
        part = share(gpu_ns, self._snapshot.accounts.total)
        if not self._bar or part is None:
            return []
        filled, empty = bar(part, self._bar, self._glyphs)
        return [("  ", ""), (filled, role), (empty, "faint")]


def _percents(snapshot: Snapshot) -> list[str]:
    """Parts of the GPU time in percent, in the order of `_amounts`: rounded together, so that they make 100."""
    accounts = snapshot.accounts
    lines = [t.gpu_ns for t in snapshot.tenants]
    lines += [accounts.idle, accounts.overhead, accounts.underfill, accounts.unobserved]
    if accounts.total <= 0:
        return ["–"] * len(lines)
    if min(lines) < 0:
        return [f"{line / accounts.total * 100:.1f}" for line in lines]
    return [f"{permille / 10:.1f}" for permille in apportion(1000, lines)]


def _amounts(snapshot: Snapshot) -> list[str]:
    """Amounts per hour of the tenants, then idle, overhead, underfill and unobserved."""
    shown = hourly(snapshot)
    if shown is None:
        return ["–"] * (len(snapshot.tenants) + 4)
    return [money.text(units, shown.places) for units in (*shown.tenants, *shown[2:])]
