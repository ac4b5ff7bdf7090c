"""`farebox archive`: hot rows to Parquet."""

from __future__ import annotations

from pathlib import Path

import click

from .options import store_argument

EPILOG = """\b
Examples
  farebox archive STORE
  python -c "import pandas; print(pandas.read_parquet('STORE/archive/steps'))"
"""


@click.command(epilog=EPILOG, short_help="Move everything recorded to Parquet.")
@store_argument
def archive(store: Path) -> None:
    """Roll everything recorded so far into STORE/archive as Parquet, and merge small files.

    The recorder does this by itself every hour and at its end; this is for a store whose recorder was killed, and for
    one of an older Farebox, which it brings up to date.
    """
    from ..storage.store import create_store

    with create_store(store, make=False) as opened:
        opened.roll()
        opened.compact()
        click.echo(f"archived in {opened.path / 'archive'}")
