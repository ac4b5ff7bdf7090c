"""`farebox budgets`: what a team means to spend."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError
from .listing import print_records, print_table
from .options import MONEY, currency_option, json_option, store_argument, tz_option

if TYPE_CHECKING:
    from ..events import Budget

EPILOG = """\b
Examples
  farebox budgets set STORE support --period 2026-10 --soft 8000 --hard 10000
  farebox budgets set STORE support --period 2026 --hard 120000 --currency EUR --tz Europe/Berlin
  farebox budgets list STORE
"""


@click.group(epilog=EPILOG, short_help="Set what teams mean to spend.")
def budgets() -> None:
    """Set what teams mean to spend in a period; reports show how far it is spent, and when it will be."""


@budgets.command("set", epilog=EPILOG)
@store_argument
@click.argument("team")
@click.option("--period", required=True, help="A year, month or day: 2026, 2026-10 or 2026-10-05.")
@click.option("--soft", type=MONEY, help="Warn above this amount.")
@click.option("--hard", type=MONEY, help="Broken above this amount.")
@currency_option
@tz_option
def set_budget(
    store: Path, team: str, period: str, soft: Decimal | None, hard: Decimal | None, currency: str, tz: str
) -> None:
    """Set a team's limits for a period; setting them again replaces both. Live screens show them at once."""
    from ..collector.budget_watch import put_states
    from ..costing.periods import Period
    from ..costing.team_names import TeamNames
    from ..events import BUDGETS, TEAM_RENAMES, Budget
    from ..storage.store import open_store

    if soft is None and hard is None:
        raise InputError("a budget needs a limit: --soft, --hard or both")
    if soft is not None and hard is not None and soft > hard:
        raise InputError(f"the soft limit {soft} is above the hard one {hard}")
    asked = Period.parse(period, tz)
    with open_store(store) as opened:
        newest = TeamNames(opened.settings(TEAM_RENAMES)).at(team, asked.from_ns)
        budget = Budget(newest, asked.name, tz, currency, _micro(soft), _micro(hard), time.time_ns())
        opened.put(BUDGETS, budget)
        put_states(opened)
    if newest != team:
        click.echo(f"note: {team} is called {newest}", err=True)
    limits = [f"{word} {limit:,f}" for word, limit in (("soft", soft), ("hard", hard)) if limit is not None]
    click.echo(f"{newest} in {asked.name} ({tz}): {', '.join(limits)} {currency}")


@budgets.command("list", epilog=EPILOG)
@store_argument
@json_option
def list_budgets(store: Path, as_json: bool) -> None:
    """List all budgets."""
    from ..events import BUDGETS
    from ..storage.store import open_store

    with open_store(store) as opened:
        found: list[Budget] = opened.settings(BUDGETS)
    if as_json:
        print_records(found)
        return
    rows = [(b.team, b.period, b.tz, _limit(b.soft_micro), _limit(b.hard_micro), b.currency) for b in found]
    print_table(("team", "period", "zone", "soft", "hard", ""), rows, "no budget: set one with `farebox budgets set`")


def _micro(limit: Decimal | None) -> int | None:
    if limit is None:
        return None
    micro = limit * 10**6
    if micro != int(micro) or micro >= 2**63:
        raise InputError(f"{limit}: amounts are kept to a millionth, up to 9.2 trillion")
    return int(micro)


def _limit(micro: int | None) -> str:
    return "–" if micro is None else f"{Decimal(micro).scaleb(-6):,.2f}"
