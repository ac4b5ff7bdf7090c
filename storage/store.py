"""A store: a folder that keeps what engines did, hot for the screens and archived for good."""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from ..events import RATES, REQUESTS, STEPS, Batch, Progress, Rate, Request, Run, Spooled, Table
from . import compaction, erasure, handover, history, hot, progress, retention, runs
from .archive import missing_files, sweep
from .database import Database
from .errors import ArchiveUnreachableError, DuplicateError, StoreError, StoreFullError
from .files import open_files
from .handover import HOUR_NS
from .layout import Layout, make_private_folder
from .lock import WriterLock
from .migrations import open_checked, open_migrated
from .query import Query
from .settings import Settings
from .spool.places import forget_places, get_place
from .tables import SAMPLES

if TYPE_CHECKING:
    import pyarrow as pa

    from .stream import ArchiveStream

_WAL_LIMIT = 16 * 2**20
_LATER = (StoreFullError, ArchiveUnreachableError)
"""What keeps rows from the archive for now: they stay hot, and are rolled with the next hour."""


def create_store(path: str | Path, *, make: bool = True) -> Store:
    """Open a store for recording, bringing an older one up to date; when there is none it is made (or, if not to
    `make`, missed: StoreNotFoundError).

    Raises StoreLockedError while another process records into it, StoreError when the folder cannot be used.
    """
    layout = Layout(Path(path))
    if not make:
        Database(layout.database).close()
    try:
        _refuse_other_folders(layout)
        make_private_folder(layout.root)
        lock = WriterLock(layout.lock)
    except OSError as error:
        raise StoreError(f"cannot record into {layout.root}: {error.strerror}") from None
    try:
        make_private_folder(layout.archive)
        database = open_migrated(layout.database)
        _claim(database)
        warnings = _sweep(layout, database)
    except (OSError, sqlite3.DatabaseError) as error:
        lock.release()
        raise StoreError(f"cannot record into {layout.root}: {error}") from error
    except BaseException:
        lock.release()
        raise
    store = Store(layout, database, lock)
    store.warnings += warnings
    return store


def open_store(path: str | Path) -> Store:
    """Open a store for reading (and for settings, which any process may change).

    Raises StoreNotFoundError when there is none, StoreError when this version cannot read it.
    """
    layout = Layout(Path(path))
    return Store(layout, open_checked(layout.database), None)


class Store:
    """One store. Made by `create_store` or `open_store`; use it in a `with` block, from any thread."""

    def __init__(self, layout: Layout, database: Database, lock: WriterLock | None) -> None:
        self.path = layout.root
        self.warnings: list[str] = []
        """What could not be read so far, in plain words."""
        self._layout = layout
        self._database = database
        self._lock = lock
        self._turn = threading.RLock()
        self._rolled_hour: int | None = None

    def append(self, batch: Batch) -> None:
        """Record a batch; with the end of its run, everything goes to the archive.

        Raises DuplicateError (rows are recorded already) or OverlapError (another run of the engine has that time);
        then nothing is recorded.
        """
        self.append_all([batch])

    def append_all(self, batches: Sequence[Batch], places: Sequence[Spooled] = (), *, durable: bool = False) -> None:
        """Record batches of different runs, and up to where spools are taken, in one transaction; raises as `append`.

        `durable` outlives a power cut: needed before what it was made from is removed.
        """
        with self._recording():
            try:
                handover.record_batches(self._database, batches, places, durable=durable)
            except IntegrityError as error:
                raise self._duplicate(batches) from error
            if any(batch.run.ended_ns is not None for batch in batches):
                with suppress(*_LATER):
                    self.roll()

    def append_archive(self, batch: Batch) -> None:
        """Record a batch straight into the archive; hot gets only its last two minutes. Raises as `append` does."""
        with self._recording():
            self._check(batch)
            if handover.must_roll(self._database):
                self.roll()
            try:
                handover.archive_batch(self._layout, self._database, batch)
            except IntegrityError as error:
                raise self._duplicate([batch]) from error
            if batch.run.ended_ns is not None:
                self.roll()

    def append_samples(self, table: Table, rows: pa.Table) -> None:
        """Record readings that belong to no run: rows of one of the sample tables.

        Raises ValueError for a table that holds anything else.
        """
        if table not in SAMPLES:
            raise ValueError(f"{table.name} holds no samples: append a batch")
        with self._recording(), self._database.writing() as connection:
            hot.add_rows(connection, table, rows)

    def spooled(self, writer: str) -> Spooled | None:
        """Up to where a writer's spool is recorded; None: nothing of it is."""
        with self._database.reading() as connection:
            return get_place(connection, writer)

    def forget_spool(self, writer: str) -> None:
        """Forget how far a writer's spool is recorded, before the last of it is removed."""
        with self._recording(), self._database.writing(durable=True) as connection:
            forget_places(connection, writer)

    def hot_requests(self, engine_id: str, run_id: str, request_ids: Sequence[str]) -> list[Request]:
        """Those of a run's requests that the hot store has."""
        with self._database.reading() as connection:
            return hot.requests_of(connection, engine_id, run_id, request_ids)

    @contextmanager
    def archiving(self, engine_id: str, run_id: str) -> Generator[ArchiveStream, None, None]:
        """A stream of one run's batches straight into the archive; hot gets nothing of it."""
        from .stream import ArchiveStream

        with self._recording():
            if handover.must_roll(self._database):
                self.roll()
            with ArchiveStream(self._layout, self._database, self.progress(engine_id, run_id)) as stream:
                yield stream
            self.roll()

    def roll(self, before_ns: int | None = None) -> int:
        """Move hot rows to the archive: all, or those recorded before the first at `before_ns` or later; how many."""
        with self._recording():
            return handover.roll(self._layout, self._database, before_ns)

    def maintain(self, now_ns: int) -> None:
        """Do what is due at an instant of event time: roll closed UTC hours, give the log's space back.

        What a full disk or an object store without an answer prevents is tried again when the next hour is closed.
        """
        with self._recording():
            hour = now_ns // HOUR_NS
            if self._rolled_hour is None or hour > self._rolled_hour:
                self._rolled_hour = hour
                with suppress(*_LATER):
                    self.roll(before_ns=hour * HOUR_NS)
            if self._layout.wal.exists() and self._layout.wal.stat().st_size > _WAL_LIMIT:
                with suppress(StoreFullError):
                    self._database.checkpoint()

    def compact(self) -> int:
        """Merge the archive's files that are not full, one per table and date; returns how many were merged."""
        with self._recording():
            return compaction.compact(self._layout, self._database, self.warnings)

    def forget(self, days: Mapping[Table, int], now_ns: int, *, dry_run: bool = False) -> list[retention.Forgotten]:
        """Remove archived rows that are older than the last so many UTC days, by table; see `retention.forget`."""
        with self._recording():
            return retention.forget(self._layout, self._database, days, now_ns, dry_run=dry_run)

    def progress(self, engine_id: str, run_id: str) -> Progress | None:
        """How much of a run is recorded; None when nothing is."""
        with self._database.reading() as connection:
            return progress.get_progress(connection, engine_id, run_id)

    def check_overlap(self, engine_id: str, run_id: str, start_ns: int, end_ns: int) -> None:
        """Raise OverlapError when another run of the engine has time in [start, end)."""
        with self._database.reading() as connection:
            runs.check_overlap(connection, engine_id, run_id, start_ns, end_ns)

    def runs(self) -> list[Run]:
        """Every run, by engine and start."""
        with self._database.reading() as connection:
            return runs.all_runs(connection)

    def run(self, engine_id: str, run_id: str) -> Run | None:
        """One run as it was last recorded; None when it is not."""
        with self._database.reading() as connection:
            return runs.get_run(connection, engine_id, run_id)

    def erase_requests(self, tenant_id: str) -> int:
        """Remove a tenant's requests from hot and archive, for good; returns how many. Shares and sums stay.

        Raises StoreError when a file cannot be read or goes on being read; what was erased until then stays erased.
        """
        with self._recording():
            self.roll()
            return erasure.erase_requests(self._layout, self._database, tenant_id)

    def settings(self, table: Table) -> list[Any]:
        """Every record of one of the SETTING_TABLES, in the table's order."""
        with self._database.reading() as connection:
            return Settings(connection).all(table)

    @contextmanager
    def changing(self) -> Generator[Settings, None, None]:
        """Look at settings and change them in one transaction; works beside a recording process."""
        with self._database.writing() as connection:
            yield Settings(connection)

    def put(self, table: Table, record: tuple[Any, ...]) -> None:
        """Insert a setting, or replace the one of the same key; ClosedError for time that is closed already."""
        with self.changing() as settings:
            settings.put(table, record)

    def remove(self, table: Table, key: Sequence[Any]) -> bool:
        """Remove the setting of a key (values in the order of `table.key`); False when there is none."""
        with self.changing() as settings:
            return settings.remove(table, key)

    def rates(self) -> list[Rate]:
        """Every rate, by what it is for and start."""
        return self.settings(RATES)

    def put_rate(self, rate: Rate) -> None:
        """Insert a rate, or replace the one for the same thing and start."""
        self.put(RATES, rate)

    def missing_files(self) -> list[str]:
        """Files of the archive that count and are not there, by name; OSError when nobody can tell."""
        return missing_files(self._layout, self._database)

    def extent(self, table: Table) -> tuple[int, int] | None:
        """The instants (UTC ns) of an event table's first and last row, found without reading rows; None without."""
        return history.extent(self._database, table)

    def read(
        self,
        table: Table,
        columns: Sequence[str] | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        engine_id: str | None = None,
        *,
        coded: bool = False,
    ) -> pa.Table:
        """Rows whose time is in [start, end), every row once, as an Arrow table of the named columns.

        The order of rows is not promised; ledger lines of one key may be several and add up. Files that cannot be
        read are left out and named in `warnings`. `coded` gives texts as Arrow dictionaries.
        """
        import pyarrow as pa

        query = Query(table, columns, start_ns, end_ns, engine_id, coded)
        batches = history.scan(self._layout, self._database, query, self.warnings)
        return pa.Table.from_batches(batches, schema=query.schema)

    def scan(
        self,
        table: Table,
        columns: Sequence[str] | None = None,
        start_ns: int | None = None,
        end_ns: int | None = None,
        engine_id: str | None = None,
        *,
        coded: bool = False,
        runs: list[Run] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """What `read` answers, batch by batch in bounded memory; no file is removed until the last one is taken.

        `coded` gives texts as Arrow dictionaries, which sums by name read in half the time. A list given as `runs` gets
        every run as it stood at the instant of the answer: beside a recording process, both go on.
        """
        query = Query(table, columns, start_ns, end_ns, engine_id, coded)
        return history.scan(self._layout, self._database, query, self.warnings, _collect_runs(runs))

    def close(self) -> None:
        """Let go of the store; the next process may record into it."""
        self._database.close()
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def _recording(self) -> Generator[None, None, None]:
        """Only the lock's holder records, one thread at a time."""
        if self._lock is None:
            raise StoreError(f"{self.path} is not open for recording: open it with create_store")
        with self._turn:
            try:
                yield
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise StoreFullError(f"no room to write into {self.path}: its disk is full") from error
                if open_files(self._layout).is_remote:
                    raise ArchiveUnreachableError(f"the archive of {self.path} cannot be written: {error}") from error
                raise

    def _check(self, batch: Batch) -> None:
        with self._database.reading() as connection:
            stored = progress.get_progress(connection, batch.run.engine_id, batch.run.run_id)
        progress.check_continues(stored, batch)

    def _duplicate(self, batches: Sequence[Batch]) -> DuplicateError:
        with self._database.reading() as connection:
            steps = [key for batch in batches for key in hot.recorded_keys(connection, STEPS, batch.steps)]
            requests = [key for batch in batches for key in hot.recorded_keys(connection, REQUESTS, batch.requests)]
        some = ", ".join("/".join(map(str, key)) for key in (steps + requests)[:5])
        return DuplicateError(f"already recorded in {self.path}: {some} ({len(steps)} steps, {len(requests)} requests)")


def _collect_runs(found: list[Run] | None) -> Callable[[Connection], None] | None:
    return None if found is None else lambda connection: found.extend(runs.all_runs(connection))


def _sweep(layout: Layout, database: Database) -> list[str]:
    """Clean up after a crash, and tell what is amiss; an object store that does not answer is left for later."""
    warnings: list[str] = []
    try:
        sweep(layout, database, warnings)
    except OSError:
        if not open_files(layout).is_remote:
            raise
    return warnings


def _claim(database: Database) -> None:
    try:
        database.claim()
    except BaseException:
        database.close()
        raise


def _refuse_other_folders(layout: Layout) -> None:
    if layout.root.exists() and not layout.root.is_dir():
        raise StoreError(f"{layout.root} is a file: a store is a folder, choose another path")
    if layout.read_url() is None and not layout.database.exists() and open_files(layout).ours():
        raise StoreError(
            f"{layout.root} has an archive but no {layout.database.name}, which says what of it counts:"
            " restore that file, or record into another folder"
        )
