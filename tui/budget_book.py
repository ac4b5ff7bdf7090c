"""The budgets of a store: which hold now, and which team pays for a tenant. Only the worker needs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..costing.periods import Period
from ..costing.team_names import TeamNames
from .budgets import part, severity
from .snapshot import BudgetRow

if TYPE_CHECKING:
    from ..events import BudgetState, TeamRename, Tenant


class Budgets:
    """The budget states, tenants and teams' new names of a store, as read last."""

    def __init__(
        self,
        states: Sequence[BudgetState] = (),
        tenants: Sequence[Tenant] = (),
        renames: Sequence[TeamRename] = (),
    ) -> None:
        self._states = [(Period.parse(state.period, state.tz), state) for state in states]
        self._tenants = tenants
        self._names = TeamNames(renames)

    def at(self, now_ns: int) -> tuple[BudgetRow, ...]:
        """The budgets whose period holds an instant (UTC ns), the worst first."""
        held = [BudgetRow(**s._asdict()) for period, s in self._states if period.from_ns <= now_ns < period.to_ns]
        return tuple(sorted(held, key=lambda b: (-severity(b), -part(b), b.team, b.period, b.tz)))

    def teams(self, now_ns: int) -> dict[str, str]:
        """Tenant → the team that pays for it at an instant, by its newest name, as budgets have it."""
        in_force = (t for t in self._tenants if t.from_ns <= now_ns and (t.to_ns is None or now_ns < t.to_ns))
        return {t.tenant_id: self._names.at(t.team.strip(), t.from_ns) for t in in_force if t.team}
