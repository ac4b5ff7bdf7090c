"""`farebox report reopen` and `report closings`: take a closing back, and list what was closed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .billing import period_of
from .listing import print_table, when
from .options import json_option, reason_option, store_argument, tz_option

if TYPE_CHECKING:
    from ..events import Closing

REOPEN_EPILOG = """\b
Examples
  farebox report reopen STORE --period 2026-10 --tz Europe/Berlin --reason "closed before the lease was declared"
  farebox report close STORE --period 2026-10 --tz Europe/Berlin     (version 2, which says what it replaces)
  farebox report STORE --period 2026-10 --tz Europe/Berlin --version 1
"""
LIST_EPILOG = """\b
Examples
  farebox report closings STORE
  farebox report closings STORE --json
"""


@click.command(epilog=REOPEN_EPILOG, short_help="Reopen a period that was closed by mistake.")
@store_argument
@click.option("--period", required=True, metavar="PERIOD", help="The closed period, as it was named.")
@tz_option
@reason_option
def reopen(store: Path, period: str, tz: str, reason: str) -> None:
    """Reopen a period that was closed by mistake; its bill stays in the store as history, with the reason.

    The next close makes a new version of it. A period whose corrections are on a later closed bill is reopened after
    that one.
    """
    from ..costing.closing import check_reopen
    from ..events import CLOSINGS
    from ..storage.store import open_store

    asked = period_of(period, tz)
    with open_store(store) as opened, opened.changing() as settings:
        standing = [closing for closing in settings.all(CLOSINGS) if closing.stands]
        closing = settings.reopen(check_reopen(standing, asked), time.time_ns(), reason)
    click.echo(f"{closing.period} ({closing.tz}) version {closing.version} is reopened: {reason}")


@click.command(epilog=LIST_EPILOG, short_help="List closed periods, reopened ones too.")
@store_argument
@json_option
def closings(store: Path, as_json: bool) -> None:
    """List all closed periods with the hashes of their bills, those that were reopened too."""
    import json

    from ..events import CLOSINGS
    from ..storage.store import open_store

    with open_store(store) as opened:
        found: list[Closing] = opened.settings(CLOSINGS)
    if as_json:
        records = [{name: value for name, value in c._asdict().items() if name != "content"} for c in found]
        click.echo(json.dumps(records, indent=2, ensure_ascii=False))
        return
    rows = [(c.period, c.tz, str(c.version), when(c.closed_ns), c.content_hash[:12] + "…", _state(c)) for c in found]
    head = ("period", "zone", "version", "closed at", "SHA-256", "")
    print_table(head, rows, "nothing is closed: close a period with `farebox report close`")


def _state(closing: Closing) -> str:
    if closing.reopened_ns is None:
        return "stands"
    return f"reopened at {when(closing.reopened_ns)}: {closing.reason}"
