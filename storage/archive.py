"""The archive's files: written aside, published together, and swept when a crash left them uncounted."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from ..events import LEDGER, RUNS, Run, Table
from .database import Database
from .errors import StoreError, StoreFullError
from .files import Files, open_files, path_of
from .layout import DAY_NS, Layout, day_of
from .lock import files_removable
from .manifest import ArchivedFile, add_files, counted_paths, drop_files
from .parquet import FileWriter, Written, write_file
from .rows import extent


class OfDay(NamedTuple):
    """Rows of one UTC date, and when the first and the last of them are."""

    rows: pa.Table
    min_ns: int
    max_ns: int


@dataclass(slots=True)
class OpenFile:
    """A file of a hand-over that is still being written."""

    writer: FileWriter
    table: Table
    path: str
    min_ns: int
    max_ns: int = 0
    rows: int = 0

    def write(self, rows: pa.Table, max_ns: int) -> None:
        """Add rows that follow in the table's order, all of the file's date, and `max_ns` the latest of them."""
        self.max_ns = max_ns
        self.rows += rows.num_rows
        self.writer.write(rows)


class Staging:
    """Files of one hand-over. They count once `record` has entered them and its transaction is committed."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._open: list[OpenFile] = []
        self.begun: list[str] = []
        """Every file that was created, finished or not."""
        self.files: list[ArchivedFile] = []

    def add(self, table: Table, rows: pa.Table) -> None:
        """Write rows of one table, one sorted file per UTC date."""
        if rows.num_rows == 0:
            return
        rows = in_order(table, rows)
        for of_day in by_day(table, rows):
            self._write(table, of_day, f"{of_day.min_ns}-{secrets.token_hex(8)}")

    def add_run(self, run: Run) -> None:
        """Write a run's record to its own file, which replaces an older one."""
        key = hashlib.sha256(f"{run.engine_id}\0{run.run_id}".encode()).hexdigest()[:16]
        self._write(RUNS, OfDay(RUNS.to_arrow([run]), run.started_ns, run.started_ns), f"{run.started_ns}-{key}")

    def open(self, table: Table, min_ns: int) -> OpenFile:
        """A file for rows of the UTC date of `min_ns`, the first one's time, to be written bit by bit."""
        path = path_of(table.name, day_of(min_ns), f"{min_ns}-{secrets.token_hex(8)}")
        self.begun.append(path)
        opened = OpenFile(FileWriter(self._files.create(path), table), table, path, min_ns)
        self._open.append(opened)
        return opened

    def close(self) -> None:
        """Finish the open files: no more rows for them."""
        while self._open:
            file = self._open.pop()
            self._list(file.table, file.path, file.rows, file.writer.close(), file.min_ns, file.max_ns)

    def abandon(self) -> None:
        """Let go of the open files as they are."""
        for file in self._open:
            with contextlib.suppress(OSError):
                file.writer.abandon()
        self._open.clear()

    def record(self, connection: Connection) -> None:
        """Give every file its name and enter it in the manifest; call it last in a transaction."""
        self._files.publish([file.path for file in self.files])
        add_files(connection, self.files)

    def _write(self, table: Table, of_day: OfDay, name: str) -> None:
        rows, min_ns, max_ns = of_day
        path = path_of(table.name, day_of(min_ns), name)
        self.begun.append(path)
        written = write_file(self._files.create(path), table, rows)
        self._list(table, path, rows.num_rows, written, min_ns, max_ns)

    def _list(self, table: Table, path: str, rows: int, written: Written, min_ns: int, max_ns: int) -> None:
        day, size, foot_crc = day_of(min_ns), *written
        self.files.append(ArchivedFile(path, table.name, day, rows, size, min_ns, max_ns, foot_crc))


@contextmanager
def staging(layout: Layout, database: Database) -> Generator[Staging, None, None]:
    """Write files for one hand-over; those that did not get to count are removed when it fails."""
    files = open_files(layout)
    staged = Staging(files)
    try:
        yield staged
    except BaseException:
        with contextlib.suppress(StoreError, OSError):
            staged.abandon()
            files.discard(staged.begun)
            files.remove(_uncounted(database, staged.begun))
        raise


def replace_files(
    layout: Layout, database: Database, gone: Sequence[ArchivedFile], staged: Staging | None = None
) -> None:
    """Let files count no longer, and those of a hand-over in their place; then remove them, while nobody reads.

    They go when the database itself has it: its log alone may be lost, and then it would count on them.
    Raises ArchiveBusyError while somebody goes on reading; then nothing has changed.
    """
    files = open_files(layout)
    with files_removable(files.lock):
        with database.writing(durable=True) as connection:
            drop_files(connection, [file.path for file in gone])
            if staged is not None:
                staged.record(connection)
        with contextlib.suppress(StoreFullError):
            database.checkpoint()
        files.remove(file.path for file in gone)


def sweep(layout: Layout, database: Database, warnings: list[str]) -> list[str]:
    """Remove what a crash left in the archive: files with our names that the manifest does not know.

    When files that it knows are missing, it may be older than the archive: then nothing goes, and `warnings` says so.
    """
    files = open_files(layout)
    there = files.ours()
    leftovers = _uncounted(database, there)
    with database.reading() as connection:
        missing = counted_paths(connection).difference(there)
    if missing and leftovers:
        warnings.append(
            f"{len(missing)} files of the archive are missing, and {len(leftovers)} that nobody knows were left there:"
            f" the database may be older than the archive (the first that is missing: {files.name(min(missing))})"
        )
        return []
    files.remove(leftovers)
    return leftovers


def merged(table: Table, rows: pa.Table) -> pa.Table:
    """Add up lines of the ledger that have the same key; rows of other tables stay as they are."""
    if table is not LEDGER or rows.num_rows == 0:
        return rows
    amounts = [c.name for c in table.columns if c.name not in table.key]
    sums = rows.group_by(list(table.key), use_threads=False).aggregate([(name, "sum") for name in amounts])
    columns = [sums.column(c.name if c.name in table.key else f"{c.name}_sum") for c in table.columns]
    return pa.Table.from_arrays(columns, schema=table.schema)


def in_order(table: Table, rows: pa.Table) -> pa.Table:
    """Sort by the table's order, unless rows are."""
    return rows if is_sorted(table, rows) else rows.sort_by([(name, "ascending") for name in table.sort])


def is_sorted(table: Table, rows: pa.Table) -> bool:
    """Whether rows are in the table's order."""
    alike: Any = None  # rows that are like the next one so far; None: all
    for name in table.sort:
        values = _ranked(rows.column(name))
        if values is None:
            continue
        this, following = (values[:-1], values[1:]) if alike is None else (values[alike], values[alike + 1])
        if (following < this).any():
            return False
        equal = np.flatnonzero(following == this)
        alike = equal if alike is None else alike[equal]
        if not len(alike):
            return True
    return True


def _ranked(column: Any) -> Any:
    """Numbers as they are, texts by their rank; None: all are the same text."""
    if pa.types.is_integer(column.type):
        return column.to_numpy()
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    whole: Any = coded.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if hasattr(whole, "chunk") else whole
    if len(whole.dictionary) == 1:
        return None
    return pc.rank(whole.dictionary).to_numpy().astype(np.int64)[whole.indices.to_numpy()]


def by_day(table: Table, rows: pa.Table) -> list[OfDay]:
    """Rows of a table, apart for each UTC date."""
    at = pc.field(table.time)
    min_ns, max_ns = extent(rows, table.time)
    first, last = min_ns // DAY_NS, max_ns // DAY_NS
    if first == last:
        return [OfDay(rows, min_ns, max_ns)]
    numbers: Any = np.unique(rows.column(table.time).to_numpy() // DAY_NS)
    days = (rows.filter((at >= day * DAY_NS) & (at < (day + 1) * DAY_NS)) for day in numbers.tolist())
    return [OfDay(day, *extent(day, table.time)) for day in days]


def missing_files(layout: Layout, database: Database) -> list[str]:
    """Files that count and are not there, as they are called to people."""
    files = open_files(layout)
    with database.reading() as connection:
        counted = counted_paths(connection)
    return [files.name(path) for path in sorted(counted.difference(files.ours()))]


def _uncounted(database: Database, paths: Sequence[str]) -> list[str]:
    with database.reading() as connection:
        counted = counted_paths(connection)
    return [path for path in paths if path not in counted]
