"""Reading a store from Python: `farebox.open_store(PATH)`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ..errors import InputError
from ..events import (
    EVENT_TABLES,
    GPU_SAMPLES,
    HOST_SAMPLES,
    INTERVALS,
    LEDGER,
    REQUESTS,
    RUNS,
    SETTING_TABLES,
    SHARES,
    STEPS,
    Run,
    Table,
)
from . import runs
from .instants import Instant, instant_ns
from .layout import Layout, instant_text
from .migrations import open_checked
from .query import Query
from .source import Source, Warnings

if TYPE_CHECKING:
    from .answers import SqlAnswer, TableAnswer
    from .backup import Backup


def open_store(path: str | Path) -> StoreReader:
    """Open a store for reading, beside whoever records into it.

        store = farebox.open_store("mystore")
        store.ledger("2026-11-01", "2026-12-01", tenant="voice").df()

    Raises StoreNotFoundError when there is none, StoreError when this version cannot read it.
    """
    return StoreReader(path)


class StoreReader:
    """What a store holds, recent and archived rows as one. Every table is a method that gives an `Answer`.

    Rows are those whose time is in [start, end): a datetime with a zone, a date (midnight in UTC), ISO text or UTC
    nanoseconds; None sets no limit. Use it in a `with` block or `close` it.
    """

    def __init__(self, path: str | Path) -> None:
        layout = Layout(Path(path))
        self.path = layout.root
        self.warnings: list[str] = Warnings()
        """Files of the archive that could not be read so far, in plain words; their rows are missing in answers."""
        database = open_checked(layout.database, query_only=True)
        self._source = Source(layout, database, self.warnings, ExitStack())

    def steps(
        self,
        start: Instant | None = None,
        end: Instant | None = None,
        *,
        engine: str | None = None,
        tenant: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> TableAnswer:
        """Steps of engines by their start; with `tenant` those in which one of its sequences rode."""
        return self._answer(STEPS, columns, start, end, engine, rider=tenant)

    def shares(
        self,
        start: Instant | None = None,
        end: Instant | None = None,
        *,
        engine: str | None = None,
        tenant: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> TableAnswer:
        """Shares of steps, by the start of the step: who pays how much of it. Over a step they are all of it."""
        return self._answer(SHARES, columns, start, end, engine, tenant_id=tenant)

    def requests(
        self,
        start: Instant | None = None,
        end: Instant | None = None,
        *,
        engine: str | None = None,
        tenant: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> TableAnswer:
        """Requests, by their end."""
        return self._answer(REQUESTS, columns, start, end, engine, tenant_id=tenant)

    def ledger(
        self,
        start: Instant | None = None,
        end: Instant | None = None,
        *,
        engine: str | None = None,
        tenant: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> TableAnswer:
        """The ledger by UTC minute: every GPU-nanosecond with its owner, idle time too."""
        return self._answer(LEDGER, columns, start, end, engine, tenant_id=tenant)

    def intervals(
        self,
        start: Instant | None = None,
        end: Instant | None = None,
        *,
        engine: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> TableAnswer:
        """What the pages of scraped engines said, scrape by scrape."""
        return self._answer(INTERVALS, columns, start, end, engine)

    def gpu(
        self,
        start: Instant | None = None,
        end: Instant | None = None,
        *,
        host: str | None = None,
        gpu: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> TableAnswer:
        """Readings of GPUs; `gpu` is a device's UUID."""
        return self._answer(GPU_SAMPLES, columns, start, end, host=host, gpu_uuid=gpu)

    def host(
        self,
        start: Instant | None = None,
        end: Instant | None = None,
        *,
        host: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> TableAnswer:
        """Readings of hosts."""
        return self._answer(HOST_SAMPLES, columns, start, end, host=host)

    def runs(
        self,
        start: Instant | None = None,
        end: Instant | None = None,
        *,
        engine: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> TableAnswer:
        """Runs of engines, by their start."""
        return self._answer(RUNS, columns, start, end, engine)

    def settings(self, name: str) -> TableAnswer:
        """What people declared: `settings("rates")`, "tenants", "budgets" …; InputError for another name."""
        tables = {table.name: table for table in SETTING_TABLES}
        if name not in tables:
            raise InputError(f"there are no settings called {name!r}; there are {', '.join(tables)}")
        return self._answer(tables[name])

    def query(
        self,
        sql: str,
        start: Instant | None = None,
        end: Instant | None = None,
        *,
        engine: str | None = None,
    ) -> SqlAnswer:
        """The answer to a SELECT over all tables, recent and archived rows as one; docs/data.md lists them.

        Tables of events have a column `date` too. [start, end) and `engine` limit what they hold. Raises InputError,
        when the answer is read, for what is no SELECT or no good one.
        """
        from .answers import SqlAnswer
        from .sql import Select

        return SqlAnswer(self._source, Select(sql, _ns(start), _ns(end), engine))

    def backup(self, destination: str | Path, *, copy: bool = False) -> Backup:
        """Make a store at `destination` that holds what this one holds now, beside whoever records into it.

        Files of the archive never change, so on one file system they are linked, unless they are to be a `copy`. Events
        that still wait in spools are not in it. Raises InputError unless the destination is new or an empty folder.
        """
        from .backup import back_up

        return back_up(self._source, Path(destination), copy=copy)

    def close(self) -> None:
        """Let go of the store, and of DuckDB relations on it."""
        self._source.lent.close()
        self._source.database.close()

    def __enter__(self) -> StoreReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        with self._source.database.reading() as connection:
            found = runs.all_runs(connection)
        names = ", ".join(table.name for table in EVENT_TABLES)
        return f"<Farebox store {self.path}: {_told(found)}; {names}, settings, query>"

    def _answer(
        self,
        table: Table,
        columns: Sequence[str] | None = None,
        start: Instant | None = None,
        end: Instant | None = None,
        engine: str | None = None,
        rider: str | None = None,
        **matches: str | None,
    ) -> TableAnswer:
        from .answers import TableAnswer

        wanted = tuple((name, text) for name, text in matches.items() if text is not None)
        query = Query(table, columns, _ns(start), _ns(end), engine, matches=wanted)
        return TableAnswer(self._source, query, rider)


def _ns(value: Instant | None) -> int | None:
    return None if value is None else instant_ns(value)


def _told(found: Sequence[Run]) -> str:
    if not found:
        return "no runs"
    first, last = min(run.started_ns for run in found), max(run.wall_end_ns for run in found)
    engines = len({run.engine_id for run in found})
    count = f"{len(found)} run{'s' * (len(found) > 1)} of {engines} engine{'s' * (engines > 1)}"
    return f"{count}, {instant_text(first)} to {instant_text(last)}"
