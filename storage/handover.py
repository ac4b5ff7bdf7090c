"""Handing rows over from hot to archive: copied, published, and declared copies in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from ..events import INTERVALS, LEDGER, REQUESTS, SHARES, STEPS, Batch, Run, Spooled, Table
from . import hot
from .archive import merged, staging
from .database import Database
from .layout import Layout
from .progress import check_continues, get_progress, put_progress
from .runs import mark_archived, newest_by_engine, put_run, unarchived_runs
from .spool.places import put_place
from .tables import ROLLED, SQL_TABLES

if TYPE_CHECKING:
    import pyarrow as pa

HOUR_NS = 3_600_000_000_000
HOT_NS = 2 * HOUR_NS
"""How much archived time the hot store keeps for the live screens."""
HOT_TAIL_NS = 120_000_000_000
"""How much of it is kept of a run that goes straight to the archive."""


def must_roll(database: Database) -> bool:
    """Whether hot holds rows that the archive does not have."""
    with database.reading() as connection:
        return any(hot.last_id(connection, table) > hot.watermark(connection, table) for table in ROLLED)


def roll(layout: Layout, database: Database, before_ns: int | None = None) -> int:
    """Move rows to the archive: all of them, or those told before the first one at `before_ns`; returns how many."""
    moved = 0
    with staging(layout, database) as staged:
        ends: dict[Table, int] = {}
        for table in ROLLED:
            with database.reading() as connection:
                end = hot.last_id(connection, table, before_ns)
                if end == hot.watermark(connection, table):
                    continue
                rows, ends[table] = _up_to(connection, table, end), end
            moved += rows.num_rows
            staged.add(table, merged(table, rows))
        with database.reading() as connection:
            runs = unarchived_runs(connection)
        for run in runs:
            staged.add_run(run)
        with database.writing() as connection:
            for table, end in ends.items():
                hot.move_watermark(connection, table, end)
            mark_archived(connection, runs)
            for engine_id, newest_ns in newest_by_engine(connection):
                hot.trim(connection, engine_id, newest_ns - HOT_NS)
            hot.trim_samples(connection, HOT_NS)
            staged.record(connection)
    return moved


def record_batches(database: Database, batches: Sequence[Batch], places: Sequence[Spooled], *, durable: bool) -> None:
    """Write batches, and up to where spools are taken, to the hot store; raises as `check_continues` does, and then
    writes nothing.
    """
    with database.writing(durable=durable) as connection:
        for batch in batches:
            check_continues(get_progress(connection, batch.run.engine_id, batch.run.run_id), batch)
            put_heads(connection, batch)
            for table, rows in batch_rows(batch):
                hot.add_rows(connection, table, rows)
        for place in places:
            put_place(connection, place)


def archive_batch(layout: Layout, database: Database, batch: Batch) -> None:
    """Write a batch straight to the archive, and its newest part to hot as copies.

    Call it when nothing has to be rolled: copies are told by their ids, so no other row may come before them.
    """
    with staging(layout, database) as staged:
        for table, rows in batch_rows(batch):
            staged.add(table, merged(table, rows))
        with database.writing() as connection:
            put_heads(connection, batch)
            replace_tail(connection, batch)
            staged.record(connection)


def batch_rows(batch: Batch) -> list[tuple[Table, pa.Table]]:
    """The tables of a batch with their rows."""
    rows = [(STEPS, batch.steps), (SHARES, batch.shares), (REQUESTS, batch.requests), (LEDGER, batch.ledger)]
    return rows if batch.intervals is None else [*rows, (INTERVALS, batch.intervals)]


def put_heads(connection: Connection, batch: Batch) -> None:
    """Write how far the run and its recording have come."""
    put_run(connection, batch.run)
    put_progress(connection, batch.run, batch.progress)


def _up_to(connection: Connection, table: Table, end: int) -> pa.Table:
    names = [c.name for c in table.columns]
    return hot.unarchived(connection, table, names, SQL_TABLES[table.name].c.id <= end)


def drop_copies(connection: Connection, run: Run) -> None:
    """Drop what hot holds of an engine whose run goes on in the archive alone; all of it is archived."""
    hot.trim(connection, run.engine_id, run.wall_end_ns + 1)


def replace_tail(connection: Connection, batch: Batch) -> None:
    """Write a batch's newest rows to hot as copies of archived ones, in place of older ones of the engine."""
    import pyarrow.compute as pc

    newest = [pc.max(rows.column(table.time)).as_py() for table, rows in batch_rows(batch) if rows.num_rows]
    if not newest:
        return
    tail_ns = max(newest) - HOT_TAIL_NS
    for table, rows in batch_rows(batch):
        hot.add_rows(connection, table, rows.filter(pc.greater_equal(rows.column(table.time), tail_ns)))
        hot.move_watermark(connection, table, hot.last_id(connection, table))
    hot.trim(connection, batch.run.engine_id, tail_ns)
