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

    The recorder does this by itself every hour and at its end; this is for a store whose recorder was killed.
    """
    from ..storage.store import create_store, open_store

    open_store(store).close()
    with create_store(store) as opened:
        opened.roll()
        opened.compact()
        click.echo(f"archived in {opened.path / 'archive'}")
