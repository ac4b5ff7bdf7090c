"""`farebox report close`: freeze a period's bill."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .billing import method_of, method_options, period_of
from .listing import when
from .options import store_argument, tz_option

if TYPE_CHECKING:
    from ..events import Closing

EPILOG = """\b
Examples
  farebox report close STORE --period 2026-10 --tz Europe/Berlin --by team,tenant --idle weighted
  farebox report STORE --period 2026-10 --tz Europe/Berlin         (prints it from then on, to the byte)
"""


@click.command(epilog=EPILOG, short_help="Freeze a period's bill.")
@store_argument
@click.option("--period", required=True, metavar="PERIOD", help="A year, month or day (2026-10), or FROM/TO.")
@tz_option
@method_options
@click.option("--early", is_flag=True, help="Even though the period is not over as far as the store knows.")
def close(store: Path, period: str, tz: str, early: bool, **options: Any) -> None:
    """Freeze a period's bill: its lines, method, rates and versions, with their hash.

    What arrives later never changes it: it becomes correction lines on the open bill that follows. What was closed by
    mistake is reopened with farebox report reopen, and both bills are kept.
    """
    from ..collector.books import load_books
    from ..costing.closing import close as freeze
    from ..costing.closing_report import thaw_report
    from ..events import CLOSINGS
    from ..storage.store import open_store

    asked, method = period_of(period, tz), method_of(options)
    with open_store(store) as opened:
        books = load_books(opened, asked, policy=method.policy, hourly="hour" in method.by)
        closing = freeze(books, asked, *method, early=early)
        opened.put(CLOSINGS, closing)
        warnings = (*opened.warnings, *thaw_report(closing).check())
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    click.echo(
        f"{closing.period} ({closing.tz}){_version(closing)} is closed since {when(closing.closed_ns)},"
        f" SHA-256 {closing.content_hash}"
    )


def _version(closing: Closing) -> str:
    return f" version {closing.version}" if closing.version > 1 else ""
