"""`farebox archive`: hot rows to Parquet, and old Parquet away."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError
from .options import store_argument

if TYPE_CHECKING:
    from ..events import Table
    from ..storage.retention import Forgotten
    from ..storage.store import Store

EPILOG = """\b
Examples
  farebox archive STORE
  farebox archive STORE --keep steps=90d --keep shares=90d --keep gpu=30d --dry-run
  python -c "import pandas; print(pandas.read_parquet('STORE/archive/steps'))"
"""


@click.command(epilog=EPILOG, short_help="Move everything recorded to Parquet; forget what is old.")
@store_argument
@click.option(
    "--keep",
    multiple=True,
    metavar="TABLE=DAYSd",
    help="Keep only the last so many UTC days of a table's rows; may be given once for each.",
)
@click.option("--dry-run", is_flag=True, help="With --keep: tell what would go, and let it stay.")
def archive(store: Path, keep: tuple[str, ...], dry_run: bool) -> None:
    """Roll everything recorded so far into STORE/archive as Parquet, and merge small files.

    The recorder does this by itself every hour and at its end; this is for a store whose recorder was killed, and for
    one of an older Farebox, which it brings up to date. Bills come from the ledger, which stays: forgetting steps or
    shares changes none, but no other --policy can be asked for that time.
    """
    from ..storage.store import create_store

    days = _days(keep)
    with create_store(store, make=False) as opened:
        opened.roll()
        opened.compact()
        if days:
            _tell(opened, days, dry_run)
        click.echo(f"archived in {opened.path / 'archive'}")


def _days(keep: tuple[str, ...]) -> dict[Table, int]:
    """What is kept of each table, in days; the ledger stays."""
    from ..events import LEDGER
    from ..storage.tables import ROLLED

    tables = {table.name: table for table in ROLLED if table is not LEDGER}
    found: dict[Table, int] = {}
    for text in keep:
        name, _, days = text.partition("=")
        count = days.removesuffix("d")
        if name not in tables or not count.isdecimal() or int(count) < 1:
            raise InputError(f"--keep {text}: write TABLE=DAYSd, as steps=90d, with one of {', '.join(tables)}")
        found[tables[name]] = int(count)
    return found


def _tell(store: Store, days: dict[Table, int], dry_run: bool) -> None:
    gone: list[Forgotten] = store.forget(days, time.time_ns(), dry_run=dry_run)
    verb = "would go" if dry_run else "are gone"
    for each in gone:
        click.echo(f"{each.table}: {each.rows:,} rows before {each.before} ({each.bytes / 1e6:,.1f} MB) {verb}")
