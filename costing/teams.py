"""Teams: who pays for a tenant at which minute, and what tenants and teams are called.

Names are stripped of the blanks around them and otherwise taken literally: "blue" and " blue " are one team, "Blue" is
another. A tenant without a row, or whose row names no team, is `UNATTRIBUTED`. A row that begins before its team got
another name belongs to the team of that name; one that begins later means another team.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

import pyarrow as pa

from ..errors import InputError
from ..events import TeamRename, Tenant
from . import arrow
from .cell import PricedCell
from .in_force import Dated, in_force
from .segments import Ints
from .team_names import TeamNames

UNATTRIBUTED = "unattributed"


class TenantError(InputError):
    """Tenant rows that name two payers for one minute."""


class Register:
    """The tenants' rows by number. Raises TenantError where two rows of a tenant overlap."""

    def __init__(self, tenants: Sequence[Tenant], renames: Sequence[TeamRename] = ()) -> None:
        self.rows = tuple(sorted(tenants, key=lambda tenant: (tenant.tenant_id, tenant.from_ns)))
        for earlier, later in pairwise(self.rows):
            overlap = earlier.to_ns is None or later.from_ns < earlier.to_ns
            if earlier.tenant_id == later.tenant_id and overlap:
                raise TenantError(f"two rows of tenant {later.tenant_id} hold at {later.from_ns}")
        self.names = TeamNames(renames)

    def of(self, ledger: pa.Table) -> Ints:
        """Number of each ledger line's row (int64[rows]), −1 where its tenant has none at that minute."""
        names = sorted({row.tenant_id for row in self.rows})
        code = {name: number for number, name in enumerate(names)}
        dated = [Dated(number, code[row.tenant_id], row.from_ns, row.to_ns) for number, row in enumerate(self.rows)]
        return in_force(dated, arrow.codes(ledger, "tenant_id", names), arrow.ints(ledger, "minute_ns"))

    def teams(self) -> list[str]:
        """The team of each row, and at the end of no row; a renamed team has its newest name."""
        return [*(self.names.at(_clean(row.team), row.from_ns) for row in self.rows), UNATTRIBUTED]

    def cost_centres(self) -> list[str]:
        """The cost centre of each row, and at the end of no row."""
        return [*(_clean(row.cost_centre) for row in self.rows), UNATTRIBUTED]

    def tenant_labels(self, to_ns: int) -> dict[str, str]:
        """What to print for tenants whose name is not their id, or that were deleted by `to_ns` (UTC)."""
        labels: dict[str, str] = {}
        for tenant_id, group in groupby(self.rows, key=lambda row: row.tenant_id):
            rows = list(group)
            names = list(dict.fromkeys(row.name.strip() or tenant_id for row in reversed(rows)))
            ended = rows[-1].to_ns is not None and rows[-1].to_ns <= to_ns
            label = _label(names) + (" (deleted)" if ended else "")
            if label != tenant_id:
                labels[tenant_id] = label
        return labels

    def team_labels(self) -> dict[str, str]:
        """What to print for teams that were renamed."""
        return {newest: _label([newest, *olds]) for newest, olds in sorted(self.names.former().items())}


def relabelled(
    cells: Iterable[PricedCell], tenants: Sequence[Tenant], then: Sequence[TeamRename], now: Sequence[TeamRename]
) -> Iterator[PricedCell]:
    """Cells that `tenants` gave their teams, by the names that hold `now` instead of those `then`."""
    rows = () if set(then) == set(now) else tenants
    before, after = (Register(rows, renames) for renames in (then, now))
    names = zip(before.rows, before.teams(), after.teams(), strict=False)
    renamed = {(row.tenant_id, old): new for row, old, new in names if old != new}
    for cell in cells:
        new = renamed.get((cell.tenant_id, cell.team)) if renamed else None
        yield cell if new is None else cell._replace(team=new)


def _clean(name: str | None) -> str:
    return (name or "").strip() or UNATTRIBUTED


def _label(names: Sequence[str]) -> str:
    newest, *former = names
    return f"{newest} (formerly {', '.join(former)})" if former else newest
