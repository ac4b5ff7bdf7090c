"""What live screens poll: the newest rows of the hot store. Arrow loads when a run has rows in the archive only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from sqlalchemy import Connection, Select, bindparam, func, select

from ..events import (
    GPU_SAMPLES,
    HOST_SAMPLES,
    INTERVALS,
    RATES,
    REQUESTS,
    SHARES,
    STEPS,
    GpuSample,
    HostSample,
    Interval,
    Rate,
    Request,
    Run,
    Share,
    Step,
    Table,
)
from . import hot, runs
from .layout import Layout
from .manifest import files_of
from .migrations import open_checked
from .query import Query
from .rows import records
from .settings import Settings
from .tables import SQL_TABLES


class LiveReader:
    """Polls a store in short transactions beside its writer.

    It sees the recent window, archived copies included, which is not the whole truth: reports ask the `Store`.
    Raises StoreNotFoundError when there is no store, or not any more.
    """

    def __init__(self, path: str | Path) -> None:
        self._layout = Layout(Path(path))
        self._database = open_checked(self._layout.database, query_only=True)

    def version(self) -> int | None:
        """A number that stays the same as long as nothing is written: no need to look again. None: not told."""
        return self._database.version()

    def runs(self) -> list[Run]:
        """Every run, by engine and start."""
        with self._database.reading() as connection:
            return runs.all_runs(connection)

    def rates(self) -> list[Rate]:
        """Every rate, by what it is for and start."""
        return self.settings(RATES)

    def settings(self, table: Table) -> list[Any]:
        """Every record of one of the SETTING_TABLES, in the table's order."""
        with self._database.reading() as connection:
            return Settings(connection).all(table)

    def newest_ns(self) -> int | None:
        """The newest instant that any run has told about; None without runs."""
        with self._database.reading() as connection:
            return runs.newest_ns(connection)

    def steps(
        self, after_id: int | None = None, since_ns: int | None = None, limit: int = 20_000
    ) -> tuple[list[Step], int]:
        """Steps recorded after `after_id`, or started at `since_ns` or later, and the id to continue after.

        In the order of recording, at most `limit`. Start with `since_ns` alone (None: all that is hot), then hand
        back the id: no row is missed or told twice.
        """
        return self._rows(STEPS, after_id, since_ns, limit)

    def shares(
        self, after_id: int | None = None, since_ns: int | None = None, limit: int = 20_000
    ) -> tuple[list[Share], int]:
        """Shares of steps; see `steps`."""
        return self._rows(SHARES, after_id, since_ns, limit)

    def requests(
        self, after_id: int | None = None, since_ns: int | None = None, limit: int = 20_000
    ) -> tuple[list[Request], int]:
        """Requests, by the instant at which they finished; see `steps`."""
        return self._rows(REQUESTS, after_id, since_ns, limit)

    def intervals(
        self, after_id: int | None = None, since_ns: int | None = None, limit: int = 20_000
    ) -> tuple[list[Interval], int]:
        """Intervals of scraped engines; see `steps`."""
        return self._rows(INTERVALS, after_id, since_ns, limit)

    def gpu_samples(
        self, after_id: int | None = None, since_ns: int | None = None, limit: int = 20_000
    ) -> tuple[list[GpuSample], int]:
        """Readings of GPUs; see `steps`."""
        return self._rows(GPU_SAMPLES, after_id, since_ns, limit)

    def host_samples(
        self, after_id: int | None = None, since_ns: int | None = None, limit: int = 20_000
    ) -> tuple[list[HostSample], int]:
        """Readings of hosts; see `steps`."""
        return self._rows(HOST_SAMPLES, after_id, since_ns, limit)

    def sums(
        self, table: Table, after_id: int | None, by: Sequence[str], of: Sequence[str]
    ) -> tuple[list[tuple[Any, ...]], int]:
        """Rows recorded after `after_id`, added up: values of `by`, then sums of `of`; and the id to continue after.

        None begins behind the newest row: there is nothing to add up yet.
        """
        sql = SQL_TABLES[table.name]
        keys = [sql.c[name] for name in by]
        with self._database.reading() as connection:
            newest = connection.execute(select(func.max(sql.c.id))).scalar() or 0
            if after_id is None or newest <= after_id:
                return [], newest if after_id is None else after_id
            query = select(*keys, *(func.sum(sql.c[name]) for name in of)).where(sql.c.id > after_id)
            found = connection.execute(query.group_by(*keys)).fetchall()
        return [tuple(row) for row in found], newest

    def newest(self, table: Table, since_ns: int) -> list[Any]:
        """Each engine's newest row that starts at `since_ns` (UTC) or later."""
        sql = SQL_TABLES[table.name]
        ids = select(func.max(sql.c.id)).where(sql.c[table.time] >= since_ns).group_by(sql.c.engine_id)
        with self._database.reading() as connection:
            return hot.records_where(connection, table, sql.c.id.in_(ids))

    def archive_of(self, table: Table, run: Run, since_ns: int) -> Path | None:
        """The store to ask for `archived` rows of a run; None: there are none. Tells it without Arrow."""
        return self._layout.root if self._archived_until(table, run, since_ns)[0] else None

    def archived(self, table: Table, run: Run, since_ns: int) -> list[Any]:
        """Records of a run from an instant on that come before its first hot row, in the table's order.

        Runs at full speed leave nothing in the hot store. A file that cannot be read is left out. This loads Arrow.
        """
        has_some, end_ns = self._archived_until(table, run, since_ns)
        return self._from_archive(table, run, since_ns, end_ns) if has_some else []

    def close(self) -> None:
        """Let go of the store."""
        self._database.close()

    def __enter__(self) -> LiveReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _archived_until(self, table: Table, run: Run, since_ns: int) -> tuple[bool, int | None]:
        """Whether files may hold rows from an instant on that are not hot, and where the run's hot rows begin."""
        with self._database.reading() as connection:
            hot_ns = hot.first_ns(connection, table, run)
            is_hot = hot_ns is not None and hot_ns <= since_ns
            return not is_hot and bool(files_of(connection, table.name, since_ns, hot_ns)), hot_ns

    def _from_archive(self, table: Table, run: Run, since_ns: int, end_ns: int | None) -> list[Any]:
        import pyarrow as pa
        import pyarrow.compute as pc

        from .history import scan

        query = Query(table, None, since_ns, end_ns, run.engine_id)
        rows = pa.Table.from_batches(scan(self._layout, self._database, query, []), schema=query.schema)
        rows = rows.filter(pc.field("run_id") == run.run_id)
        return table.from_arrow(rows.sort_by([(name, "ascending") for name in table.sort]))

    def _rows(self, table: Table, after_id: int | None, since_ns: int | None, limit: int) -> tuple[list[Any], int]:
        with self._database.reading() as connection:
            if after_id is not None:
                found = connection.execute(_after(table), {"after_id": after_id, "most": limit}).fetchall()
            else:
                found = connection.execute(_since(table), {"since_ns": since_ns or 0, "most": limit}).fetchall()
            if not found:
                return [], _newest_id(connection, table) if after_id is None else after_id
        return records(table, [row[1:] for row in found]), found[-1][0]


@cache
def _after(table: Table) -> Select[Any]:
    """What is told after an id: made once, because making a statement takes longer than most answers."""
    return _in_order(table).where(SQL_TABLES[table.name].c.id > bindparam("after_id"))


@cache
def _since(table: Table) -> Select[Any]:
    return _in_order(table).where(SQL_TABLES[table.name].c[table.time] >= bindparam("since_ns"))


def _in_order(table: Table) -> Select[Any]:
    sql = SQL_TABLES[table.name]
    return select(sql.c.id, *(sql.c[c.name] for c in table.columns)).order_by(sql.c.id).limit(bindparam("most"))


def _newest_id(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.max(SQL_TABLES[table.name].c.id))).scalar() or 0
