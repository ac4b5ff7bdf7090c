"""A stream into the archive: batch after batch of a run at full speed, counted a million steps at a time."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pyarrow as pa

from ..events import LEDGER, REQUESTS, SHARES, STEPS, Batch, Progress, Run, Table
from .archive import OpenFile, Staging, by_day, is_sorted, merged, staging
from .database import Database
from .handover import batch_rows, drop_copies, put_heads
from .layout import Layout, day_of
from .progress import check_continues

if TYPE_CHECKING:
    from types import TracebackType

COMMIT_STEPS = 1 << 20


class ArchiveStream:
    """Takes one run's batches in their order; use it in a `with` block.

    Nothing goes to the hot store. What was committed stays: every million steps, with the end of the run, and when the
    block is left in order. When it is left by an error, the rest is removed.
    """

    def __init__(self, layout: Layout, database: Database, known: Progress | None) -> None:
        self._layout = layout
        self._database = database
        self._known = known
        self._stack = ExitStack()
        self._staged: Staging | None = None
        self._files: dict[tuple[str, str], OpenFile] = {}
        self._ledger: list[pa.Table] = []
        self._last: Batch | None = None
        self._steps = 0

    def append(self, batch: Batch) -> None:
        """Write a batch, which must continue the one before; raises as `Store.append_archive` does."""
        check_continues(self._known, batch)
        if self._staged is None:
            self._staged = self._stack.enter_context(staging(self._layout, self._database))
        for table, rows in batch_rows(batch):
            if table is LEDGER:
                self._ledger.append(rows)
            elif rows.num_rows:
                self._write(self._staged, table, rows)
        self._known, self._last = batch.progress, batch
        self._steps += batch.steps.num_rows
        if self._steps >= COMMIT_STEPS or batch.run.ended_ns is not None:
            self.commit()

    def end(self, run: Run, progress: Progress) -> None:
        """The run ended, and everything was told: commit that, too."""
        steps, shares, requests, ledger = (t.schema.empty_table() for t in (STEPS, SHARES, REQUESTS, LEDGER))
        self.append(Batch(run, steps, shares, requests, ledger, progress))

    def commit(self) -> None:
        """Make everything so far count, in one transaction."""
        staged, batch = self._staged, self._last
        if staged is None or batch is None:
            return
        staged.add(LEDGER, merged(LEDGER, pa.concat_tables(self._ledger)))
        staged.close()
        with self._database.writing() as connection:
            put_heads(connection, batch)
            drop_copies(connection, batch.run)
            staged.record(connection)
        self._stack.close()
        self._staged = None
        self._files.clear()
        self._ledger.clear()
        self._steps = 0

    def __enter__(self) -> ArchiveStream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.commit()
        self._stack.__exit__(kind, error, trace)

    def _write(self, staged: Staging, table: Table, rows: pa.Table) -> None:
        if not is_sorted(table, rows):
            raise ValueError(f"{table.name} of a stream are not in the order of {', '.join(table.sort)}")
        for of_day in by_day(table, rows):
            key = table.name, day_of(of_day.min_ns)
            if key not in self._files:
                self._files[key] = staged.open(table, of_day.min_ns)
            self._files[key].write(of_day.rows, of_day.max_ns)
