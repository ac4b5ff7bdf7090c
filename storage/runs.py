"""Runs in the hot store: the newest record of each, and no two of one engine at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, func, insert, select, tuple_, update

from ..events import RUNS, Run
from .errors import OverlapError
from .hot import records_where
from .rows import record_values
from .tables import SQL_TABLES

_SQL = SQL_TABLES[RUNS.name]
_WALL_END = func.coalesce(_SQL.c.ended_ns, _SQL.c.heartbeat_ns)
_OF_RUN = (_SQL.c.engine_id == bindparam("engine"), _SQL.c.run_id == bindparam("run"))
_FIND = select(_WALL_END.label("wall_end_ns"), _SQL.c.ended_ns.is_not(None).label("has_ended")).where(*_OF_RUN)
_MOVE = update(_SQL).where(*_OF_RUN).values({column.name: bindparam(column.name) for column in _SQL.columns})
_OVERLAPPING = (
    select(_SQL.c.run_id, _SQL.c.started_ns, _WALL_END.label("wall_end_ns"))
    .where(
        _SQL.c.engine_id == bindparam("engine"),
        _SQL.c.run_id != bindparam("run"),
        _SQL.c.gpus > 0,
        _SQL.c.started_ns < bindparam("end_ns"),
        bindparam("start_ns") < _WALL_END,
        _SQL.c.started_ns < _WALL_END,
    )
    .order_by(_SQL.c.started_ns)
    .limit(1)
)


def all_runs(connection: Connection) -> list[Run]:
    """Every run, by engine and start."""
    return records_where(connection, RUNS)


def get_run(connection: Connection, engine_id: str, run_id: str) -> Run | None:
    """One run; None when there is none of that name."""
    return next(iter(records_where(connection, RUNS, _SQL.c.engine_id == engine_id, _SQL.c.run_id == run_id)), None)


def unarchived_runs(connection: Connection) -> list[Run]:
    """Runs that changed since they were last written to the archive."""
    return records_where(connection, RUNS, _SQL.c.archived.is_(False))


def mark_archived(connection: Connection, runs: Sequence[Run]) -> None:
    """Say that the archive has these records."""
    keys = [(run.engine_id, run.run_id) for run in runs]
    connection.execute(update(_SQL).where(tuple_(_SQL.c.engine_id, _SQL.c.run_id).in_(keys)).values(archived=True))


def put_run(connection: Connection, run: Run) -> None:
    """Insert or replace a run's record; one that tells less than the record before changes nothing.

    A virtual run that is repeated starts from its beginning: its early heartbeats must not undo its end.
    """
    key = {"engine": run.engine_id, "run": run.run_id}
    before = connection.execute(_FIND, key).first()
    if before is not None and (before.wall_end_ns, before.has_ended) >= (run.wall_end_ns, run.ended_ns is not None):
        return
    if run.gpus:
        check_overlap(connection, run.engine_id, run.run_id, run.started_ns, run.wall_end_ns)
    values = {**record_values(RUNS, run), "archived": False}
    if before is None:
        connection.execute(insert(_SQL).values(values))
    else:
        connection.execute(_MOVE, key | values)


def check_overlap(connection: Connection, engine_id: str, run_id: str, start_ns: int, end_ns: int) -> None:
    """Raise OverlapError when another run of the engine has time in [start, end); runs without GPUs have none."""
    if end_ns <= start_ns:
        return
    claimed = {"engine": engine_id, "run": run_id, "start_ns": start_ns, "end_ns": end_ns}
    other = connection.execute(_OVERLAPPING, claimed).first()
    if other is not None:
        raise OverlapError(
            f"run {run_id} of engine {engine_id} [{start_ns}, {end_ns}) overlaps with run {other.run_id}"
            f" [{other.started_ns}, {other.wall_end_ns}), which is already recorded: one engine cannot do two things"
            " at once, so give this run another --engine-id, or record it into another store"
        )


def newest_by_engine(connection: Connection) -> list[tuple[str, int]]:
    """Every engine with the newest instant that it has told about."""
    query = select(_SQL.c.engine_id, func.max(_WALL_END)).group_by(_SQL.c.engine_id)
    return [(engine_id, newest) for engine_id, newest in connection.execute(query)]


def newest_ns(connection: Connection) -> int | None:
    """The newest instant that any run has told about; None without runs."""
    return connection.execute(select(func.max(_WALL_END))).scalar()
