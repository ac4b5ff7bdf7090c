"""Compaction: one file per table and date instead of many, with the same rows."""

from __future__ import annotations

import pyarrow as pa

from ..events import Table
from .archive import merged, replace_files, staging
from .damage import scan_checked
from .database import Database
from .errors import ArchiveBusyError
from .files import open_files
from .layout import Layout
from .manifest import FULL_ROWS, ArchivedFile, crowded_partitions, files_of
from .tables import ROLLED


def compact(layout: Layout, database: Database, warnings: list[str]) -> int:
    """Merge the small files of every partition; returns how many files were merged.

    Damaged files stay as they are and are named in `warnings`. It gives up when somebody goes on reading the archive.
    """
    tables = {table.name: table for table in ROLLED}
    with database.reading() as connection:
        partitions = crowded_partitions(connection, list(tables))
    merged_files = 0
    for name, day in partitions:
        try:
            merged_files += _compact_partition(layout, database, tables[name], day, warnings)
        except ArchiveBusyError:
            break
    return merged_files


def _compact_partition(layout: Layout, database: Database, table: Table, day: str, warnings: list[str]) -> int:
    with database.reading() as connection:
        files = [file for file in files_of(connection, table.name) if file.date == day and file.rows < FULL_ROWS]
    sources, rows = _read(layout, table, files, warnings)
    if len(sources) < 2:
        return 0
    with staging(layout, database) as staged:
        staged.add(table, merged(table, rows))
        replace_files(layout, database, sources, staged)
    return len(sources)


def _read(
    layout: Layout, table: Table, files: list[ArchivedFile], warnings: list[str]
) -> tuple[list[ArchivedFile], pa.Table]:
    sources: list[ArchivedFile] = []
    batches: list[pa.RecordBatch] = []
    there = open_files(layout)
    for file in files:
        try:
            batches += list(scan_checked(there, file, table.schema))
        except (OSError, pa.ArrowException) as error:
            warnings.append(f"{file.path} was not compacted: {error}")
        else:
            sources.append(file)
    return sources, pa.Table.from_batches(batches, schema=table.schema)
