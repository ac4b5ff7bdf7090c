"""`farebox teams`: what teams are called."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError
from .clock import instant
from .listing import print_records, print_table, when
from .options import json_option, store_argument, tz_option

if TYPE_CHECKING:
    from ..events import Budget, TeamRename, Tenant
    from ..storage.settings import Settings

EPILOG = """\b
Examples
  farebox teams rename STORE search discovery
  farebox teams rename STORE search discovery --from 2026-05-10
  farebox teams list STORE
"""


@click.group(epilog=EPILOG, short_help="Give a team another name.")
def teams() -> None:
    """Give a team another name: it keeps its tenants, its budgets and its history.

    Tenants that go to another team move instead (farebox tenants set --team): what they used before stays with the old
    team, however many of them move at once.
    """


@teams.command(epilog=EPILOG)
@store_argument
@click.argument("old")
@click.argument("new")
@click.option(
    "--from",
    "start",
    metavar="TIME",
    help="Since when; a team that gets the old name later is another one.  [default: now]",
)
@tz_option
def rename(store: Path, old: str, new: str, start: str | None, tz: str) -> None:
    """Say that the team OLD is called NEW; all its time is shown as "NEW (formerly OLD)", and its budgets follow."""
    from ..events import BUDGETS, TEAM_RENAMES, TeamRename
    from ..storage.store import open_store

    now_ns = time.time_ns()
    told = TeamRename(old.strip(), new.strip(), now_ns if start is None else instant(start, tz), now_ns)
    with open_store(store) as opened, opened.changing() as settings:
        _check(settings, told)
        settings.put(TEAM_RENAMES, told)
        budgets: list[Budget] = [budget for budget in settings.all(BUDGETS) if budget.team == told.team]
        _move_budgets(settings, budgets, told.name)
    follow = f", with its budgets for {', '.join(budget.period for budget in budgets)}" if budgets else ""
    click.echo(f"{told.team} is called {told.name} since {when(told.from_ns)}{follow}")


@teams.command("list", epilog=EPILOG)
@store_argument
@json_option
def list_teams(store: Path, as_json: bool) -> None:
    """List the names that teams had, and got."""
    from ..events import TEAM_RENAMES
    from ..storage.store import open_store

    with open_store(store) as opened:
        found: list[TeamRename] = opened.settings(TEAM_RENAMES)
    if as_json:
        print_records(found)
        return
    rows = [(each.team, each.name, when(each.from_ns), when(each.recorded_ns)) for each in found]
    print_table(("team", "is called", "since", "told at"), rows, "no team was renamed: farebox tenants list names them")


def _check(settings: Settings, told: TeamRename) -> None:
    """Refuse what would make one team of two, or a name of none."""
    from ..costing.team_names import TeamNames
    from ..costing.teams import UNATTRIBUTED
    from ..events import BUDGETS, TEAM_RENAMES, TENANTS

    if not told.team or not told.name or UNATTRIBUTED in (told.team, told.name):
        raise InputError(f"a team has a name, and {UNATTRIBUTED} is none: it stands for tenants without a team")
    names = TeamNames(settings.all(TEAM_RENAMES))
    rows: list[Tenant] = [row for row in settings.all(TENANTS) if row.team]
    known = {names.at(row.team or "", row.from_ns, told.from_ns) for row in rows if row.from_ns < told.from_ns}
    budgeted = {budget.team for budget in settings.all(BUDGETS)}
    if told.team not in known:
        newest = names.at(told.team, -1)
        hint = f": it is called {newest}" if newest != told.team else " before then: farebox tenants list names them"
        raise InputError(f"no tenant belongs to a team called {told.team}{hint}")
    if (newest := names.at(told.team, told.from_ns)) != told.team:
        raise InputError(
            f"{told.team} is called {newest} later on already: give {newest} its new name, or another --from"
        )
    if told.name in known | budgeted:
        raise InputError(
            f"{told.name} is a team of its own already, and one name would make one of two: tenants that go there move"
            f" (farebox tenants set --team {told.name} --from …), and what they used before stays with {told.team}"
        )
    for note in _later(rows, told):
        click.echo(note, err=True)


def _later(rows: list[Tenant], told: TeamRename) -> Iterator[str]:
    """Tenants that join a team of the old name later, which is another one."""
    later = sorted({row.tenant_id for row in rows if row.team == told.team and row.from_ns >= told.from_ns})
    if later:
        yield (
            f"note: {', '.join(later)} will be with a team called {told.team} since then, which is another one;"
            f" if {told.name} is meant, say so with farebox tenants set --replace"
        )


def _move_budgets(settings: Settings, budgets: list[Budget], name: str) -> None:
    """Give a team's budgets, and how they stand, its new name."""
    from ..events import BUDGET_STATES, BUDGETS

    for budget in budgets:
        settings.remove(BUDGETS, [getattr(budget, column) for column in BUDGETS.key])
        settings.put(BUDGETS, budget._replace(team=name))
    old = {(budget.team, budget.period, budget.tz) for budget in budgets}
    for state in settings.all(BUDGET_STATES):
        if (state.team, state.period, state.tz) in old:
            settings.remove(BUDGET_STATES, [getattr(state, column) for column in BUDGET_STATES.key])
            settings.put(BUDGET_STATES, state._replace(team=name))
