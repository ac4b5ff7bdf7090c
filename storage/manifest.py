"""The manifest: which files of the archive count. A file that is not in it was left behind by a crash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, select

from .tables import FILES

FULL_ROWS = 1 << 20
"""A file of so many rows is left as it is: merging is for small ones, and all it reads is in memory."""


class ArchivedFile(NamedTuple):
    """One Parquet file of one table and UTC date; `path` is relative to the store, times are its rows' extremes."""

    path: str
    table_name: str
    date: str
    rows: int
    bytes: int
    min_ns: int
    max_ns: int
    foot_crc: int | None = None
    """Checksum of the file's foot, which says where its columns are and what they are called; None: not known."""


def add_files(connection: Connection, files: Sequence[ArchivedFile]) -> None:
    """Make files count; one that is written again under its name replaces its entry."""
    drop_files(connection, [file.path for file in files])
    if files:
        connection.execute(insert(FILES), [file._asdict() for file in files])


def drop_files(connection: Connection, paths: Iterable[str]) -> None:
    """Make files count no longer."""
    for path in paths:
        connection.execute(delete(FILES).where(FILES.c.path == path))


def files_of(
    connection: Connection, table: str, start_ns: int | None = None, end_ns: int | None = None
) -> list[ArchivedFile]:
    """The files of a table that may hold rows in [start, end), oldest first."""
    query = select(FILES).where(FILES.c.table_name == table).order_by(FILES.c.date, FILES.c.min_ns, FILES.c.path)
    if start_ns is not None:
        query = query.where(FILES.c.max_ns >= start_ns)
    if end_ns is not None:
        query = query.where(FILES.c.min_ns < end_ns)
    return [ArchivedFile(*row) for row in connection.execute(query)]


def files_before(connection: Connection, table: str, day: str) -> list[ArchivedFile]:
    """The files of a table whose UTC date is before a day (YYYY-MM-DD), oldest first."""
    query = select(FILES).where(FILES.c.table_name == table, FILES.c.date < day).order_by(FILES.c.date, FILES.c.path)
    return [ArchivedFile(*row) for row in connection.execute(query)]


def all_files(connection: Connection) -> list[ArchivedFile]:
    """Every file that counts, by path."""
    return [ArchivedFile(*row) for row in connection.execute(select(FILES).order_by(FILES.c.path))]


def counted_paths(connection: Connection) -> set[str]:
    """The path of every file that counts."""
    return set(connection.execute(select(FILES.c.path)).scalars())


def crowded_partitions(connection: Connection, tables: Sequence[str]) -> list[tuple[str, str]]:
    """(table, date) of every partition with more than one file that is not full."""
    partition = (FILES.c.table_name, FILES.c.date)
    query = (
        select(*partition)
        .where(FILES.c.table_name.in_(tables), FILES.c.rows < FULL_ROWS)
        .group_by(*partition)
        .having(func.count() > 1)
    )
    return [(table, day) for table, day in connection.execute(query.order_by(*partition))]
