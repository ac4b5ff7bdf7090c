"""`farebox database`: recent rows in PostgreSQL, and the archive in an object store."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import InputError
from .options import store_argument

EPILOG = """\b
Examples
  farebox database STORE postgresql+psycopg://farebox@db.internal/farebox      (password: ~/.pgpass, or in the URL)
  farebox database STORE --archive s3://farebox/archive?region=eu-central-1
  farebox database STORE --archive file:///mnt/large/farebox
  farebox run --trace synthetic --gpu h100 --model llama-3-8b --store STORE
"""


@click.command(epilog=EPILOG, short_help="Keep a new store's rows in PostgreSQL and in an object store.")
@store_argument
@click.argument("url", metavar="[URL]", required=False)
@click.option("--archive", metavar="URL", help="Keep the archive at s3://, gs://, abfs:// or file:///.")
def database(store: Path, url: str | None, archive: str | None) -> None:
    """Make the folder STORE for a new store whose rows are elsewhere.

    With URL, recent rows and settings are in that PostgreSQL, which needs the extra `postgres`; with --archive, Parquet
    files are in that object store or folder. The folder holds the rest, and the URLs in private files; every other
    command takes it like any store. Several hosts may use one database when each has the same archive.
    """
    from ..storage.layout import Layout
    from ..storage.postgres import keep_in
    from ..storage.remote_files import keep_archive_at, plain

    if url is None and archive is None:
        raise InputError(
            "say where the rows are to be: postgresql+psycopg://USER@HOST/DATABASE, --archive URL, or both"
        )
    if archive is not None:
        keep_archive_at(store, archive)
    if url is not None:
        keep_in(store, url)
    layout = Layout(store)
    hot = "PostgreSQL" if layout.read_url() else layout.database
    there = layout.read_archive_url()
    click.echo(f"{store}: recent rows go to {hot}, the archive is {plain(there) if there else layout.archive}")
