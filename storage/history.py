"""Answers from the whole store: archive and hot together, every row once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from sqlalchemy import Connection

from ..events import Table
from . import hot
from .damage import scan_checked, warn
from .database import Database
from .files import Files, open_files
from .layout import Layout
from .lock import files_kept
from .manifest import ArchivedFile, files_of
from .query import Query
from .tables import ROLLED


def scan(
    layout: Layout,
    database: Database,
    query: Query,
    warnings: list[str],
    beside: Callable[[Connection], None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the answer in batches, the archive's part by date; files that cannot be read are named in `warnings`.

    The manifest and the hot rows are read in one transaction, in which `beside` may read what has to agree with them;
    no file is removed until the last batch is taken.
    """
    schema = query.schema
    if query.table not in ROLLED:
        yield from _stays_hot(database, query).cast(schema).to_batches()
        return
    files = open_files(layout)
    with files_kept(files.lock):
        listed, rows = _snapshot(database, query, beside)
        for file in listed:
            for batch in _scan_file(files, query, file, warnings):
                yield pa.RecordBatch.from_arrays(batch.columns, schema=schema)
        yield from rows.cast(schema).to_batches()


def extent(database: Database, table: Table) -> tuple[int, int] | None:
    """The instants of the first and the last row of a table that is rolled, archive and hot; None without rows."""
    with database.reading() as connection:
        ends = [(file.min_ns, file.max_ns) for file in files_of(connection, table.name)]
        hot_ends = hot.extent(connection, table)
    ends += [hot_ends] if hot_ends else []
    return (min(first for first, _ in ends), max(last for _, last in ends)) if ends else None


def _snapshot(
    database: Database, query: Query, beside: Callable[[Connection], None] | None
) -> tuple[list[ArchivedFile], pa.Table]:
    with database.reading() as connection:
        if beside is not None:
            beside(connection)
        files = files_of(connection, query.table.name, query.start_ns, query.end_ns)
        return files, hot.unarchived(connection, query.table, query.names, *query.sql_conditions())


def _stays_hot(database: Database, query: Query) -> pa.Table:
    with database.reading() as connection:
        return hot.rows_where(connection, query.table, query.names, *query.sql_conditions())


def _scan_file(files: Files, query: Query, file: ArchivedFile, warnings: list[str]) -> Iterator[pa.RecordBatch]:
    rows, condition = 0, query.arrow_condition(file.min_ns, file.max_ns)
    try:
        for batch in scan_checked(files, file, query.file_schema, query.names, condition):
            rows += batch.num_rows
            yield batch
    except (OSError, pa.ArrowException) as error:
        warn(files, file, error, warnings, rows)
