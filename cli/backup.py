"""`farebox backup`: a second store with the same rows."""

from __future__ import annotations

from pathlib import Path

import click

from .options import store_argument
from .reading import reading

EPILOG = """\b
Examples
  farebox backup STORE /mnt/backups/2026-11-29
  farebox backup STORE copy --copy              (no links, also on the same file system)

\b
To restore one, copy the folder back while nobody records, or use it as it is: it is a store.
"""


@click.command(epilog=EPILOG, short_help="Copy a store, also while it is written.")
@store_argument
@click.argument("destination", metavar="DEST", type=click.Path(path_type=Path))
@click.option("--copy", is_flag=True, help="Copy the archive's files even where links would do.")
def backup(store: Path, destination: Path, copy: bool) -> None:
    """Make a store at DEST, a new folder, that holds what STORE holds at this instant.

    It works beside a recording process. Files of the archive never change, so on the same file system they are linked
    and take no space: against the loss of a disk, choose another one.
    """
    with reading(store) as opened:
        done = opened.backup(destination, copy=copy)
    click.echo(
        f"{done.path}: {done.files} files of the archive, {done.bytes / 1e6:,.1f} MB, {done.links} of them linked"
    )
