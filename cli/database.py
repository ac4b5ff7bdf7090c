"""`farebox database`: recent rows in PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import click

from .options import store_argument

EPILOG = """\b
Examples
  farebox database STORE postgresql+psycopg://farebox@db.internal/farebox      (password: ~/.pgpass, or in the URL)
  farebox run --trace synthetic --gpu h100 --model llama-3-8b --store STORE
"""


@click.command(epilog=EPILOG, short_help="Keep a new store's recent rows in PostgreSQL.")
@store_argument
@click.argument("url", metavar="URL")
def database(store: Path, url: str) -> None:
    """Make the folder STORE for a store whose recent rows and settings are in the PostgreSQL at URL.

    The folder holds the archive, and the URL in a private file; every other command takes it like any store. Several
    hosts may use one database when each has the same archive in its folder. Needs the extra `postgres`.
    """
    from ..storage.postgres import keep_in

    keep_in(store, url)
    click.echo(f"{store}: recent rows go to PostgreSQL, the archive is {store / 'archive'}")
