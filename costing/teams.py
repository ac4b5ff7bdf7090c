"""Teams: who pays for a tenant at which minute, and what tenants and teams are called.

Names are stripped of the blanks around them and otherwise taken literally: "blue" and " blue " are one team, "Blue" is
another. A tenant without a row, or whose row names no team, is `UNATTRIBUTED`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby, pairwise

import pyarrow as pa

from ..errors import InputError
from ..events import Tenant
from . import arrow
from .in_force import Dated, in_force
from .segments import Ints

UNATTRIBUTED = "unattributed"


class TenantError(InputError):
    """Tenant rows that name two payers for one minute."""


class Register:
    """The tenants' rows by number. Raises TenantError where two rows of a tenant overlap."""

    def __init__(self, tenants: Sequence[Tenant]) -> None:
        self.rows = tuple(sorted(tenants, key=lambda tenant: (tenant.tenant_id, tenant.from_ns)))
        for earlier, later in pairwise(self.rows):
            overlap = earlier.to_ns is None or later.from_ns < earlier.to_ns
            if earlier.tenant_id == later.tenant_id and overlap:
                raise TenantError(f"two rows of tenant {later.tenant_id} hold at {later.from_ns}")
        self._renamed = _renamed_teams(self.rows)

    def of(self, ledger: pa.Table) -> Ints:
        """Number of each ledger line's row (int64[rows]), −1 where its tenant has none at that minute."""
        names = sorted({row.tenant_id for row in self.rows})
        code = {name: number for number, name in enumerate(names)}
        dated = [Dated(number, code[row.tenant_id], row.from_ns, row.to_ns) for number, row in enumerate(self.rows)]
        return in_force(dated, arrow.codes(ledger, "tenant_id", names), arrow.ints(ledger, "minute_ns"))

    def teams(self) -> list[str]:
        """The team of each row, and at the end of no row; a renamed team has its newest name."""
        return [*(self._newest(_clean(row.team)) for row in self.rows), UNATTRIBUTED]

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
        former: defaultdict[str, list[str]] = defaultdict(list)
        for old in self._renamed:
            former[self._newest(old)].append(old)
        return {new: _label([new, *reversed(olds)]) for new, olds in former.items()}

    def _newest(self, team: str) -> str:
        while team in self._renamed:
            team = self._renamed[team]
        return team


def _clean(name: str | None) -> str:
    return (name or "").strip() or UNATTRIBUTED


def _label(names: Sequence[str]) -> str:
    newest, *former = names
    return f"{newest} (formerly {', '.join(former)})" if former else newest


def _renamed_teams(rows: Sequence[Tenant]) -> dict[str, str]:
    """Old to new name of teams whose tenants all moved at one instant to a team that did not exist before.

    Rows know no team but its name, so this is how a renamed team differs from one that tenants left.
    """
    moves: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    begins: dict[str, int] = {}
    for number, row in enumerate(rows):
        team, after = _clean(row.team), rows[number + 1] if number + 1 < len(rows) else None
        begins[team] = min(begins.get(team, row.from_ns), row.from_ns)
        goes_on = after is not None and (after.tenant_id, after.from_ns) == (row.tenant_id, row.to_ns)
        target = _clean(after.team) if after and goes_on else ""
        if target != team:
            moves[team].add((target, row.to_ns or 0))
    found: dict[str, str] = {}
    for team, targets in moves.items():
        (target, at), *others = targets
        if not others and target and UNATTRIBUTED not in (team, target) and begins[target] == at:
            found[team] = target
    return found
