"""Retention: files of the archive that are older than a table's rows are kept go, whole UTC days at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..events import Table
from .archive import replace_files
from .database import Database
from .layout import DAY_NS, Layout, day_of
from .manifest import files_before


class Forgotten(NamedTuple):
    """What went: rows and bytes of a table's files, all of days before `before`."""

    table: str
    before: str
    rows: int
    bytes: int


def forget(
    layout: Layout, database: Database, days: Mapping[Table, int], now_ns: int, *, dry_run: bool = False
) -> list[Forgotten]:
    """Remove the files whose rows all lie before the last so many whole UTC days; `dry_run` only tells which.

    Raises ArchiveBusyError while somebody reads the archive; then nothing has gone. Bills come from the ledger and stay
    as they are; what is asked of single steps again (`--policy`, `--by hour` of requests) ends with them.
    """
    with database.reading() as connection:
        old = {table: files_before(connection, table.name, _day(now_ns, kept)) for table, kept in days.items()}
    gone = [file for files in old.values() for file in files]
    if gone and not dry_run:
        replace_files(layout, database, gone)
    return [
        Forgotten(table.name, _day(now_ns, days[table]), sum(f.rows for f in files), sum(f.bytes for f in files))
        for table, files in old.items()
    ]


def _day(now_ns: int, days: int) -> str:
    """The first UTC date that is kept: today is the last of so many."""
    return day_of(now_ns - (days - 1) * DAY_NS)
