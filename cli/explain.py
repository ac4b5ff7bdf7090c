"""`farebox explain`: why one period's bill differs from another's."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .billing import IDLE_POLICIES, period_of
from .options import PRICE, CurrencyType, json_option, store_argument, tz_option
from .output import put, show

if TYPE_CHECKING:
    from ..costing.explanation import ExplainBy
    from ..costing.rating import IdlePolicy

EPILOG = """\b
Examples
  farebox explain STORE 2026-09 2026-10
  farebox explain STORE 2026-10-05 2026-10-06 --by team --tz America/New_York
  farebox explain STORE 2026-10-05T09:00Z/2026-10-05T10:00Z 2026-10-05T10:00Z/2026-10-05T11:00Z
"""


@click.command(epilog=EPILOG, short_help="Say why the bill changed.")
@store_argument
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--by",
    type=click.Choice(["tenant", "team", "model", "tier", "host", "engine"]),
    default="tenant",
    show_default=True,
    help="Whose part of the difference to show.",
)
@click.option(
    "--idle", type=click.Choice(IDLE_POLICIES), help="Who pays for idle.  [default: as closed, or else separate]"
)
@click.option("--rate", type=PRICE, help="Price of a GPU-hour, instead of the rates kept in the store.")
@click.option("--currency", type=CurrencyType(), help="Currency of --rate, and the only one that rates may have.")
@tz_option
@json_option
def explain(
    store: Path,
    a: str,
    b: str,
    by: ExplainBy,
    idle: IdlePolicy | None,
    rate: Decimal | None,
    currency: str | None,
    tz: str,
    as_json: bool,
) -> None:
    """Say why the bill of period B differs from that of A: requests, lengths, tiers, batch sizes, idle, rates.

    A period is a year, month or day (2026-10), or FROM/TO. The effects add up to the difference, to the micro-dollar.
    A closed period is compared as it was closed, unless you ask for another method; one that is not over, so far.
    """
    from ..collector.books import load_books
    from ..costing.explain import explain as explained
    from ..costing.explain import render, to_json
    from ..costing.explain_sides import common_policy
    from ..events import CLOSINGS
    from ..storage.store import open_store

    periods = period_of(a, tz), period_of(b, tz)
    with open_store(store) as opened:
        standing = [closing for closing in opened.settings(CLOSINGS) if closing.stands]
        policy = common_policy(standing, periods)
        books = load_books(opened, *periods, policy=policy, hourly=False)
        explanation = explained(books, *periods, by, idle, rate, currency, policy)
        warnings = opened.warnings
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        put(to_json(explanation), None)
        return
    show(lambda console: render(explanation, console))
