"""The recorder: engine events in, one booked batch after the other out to a store."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..costing.arrow import ints
from ..costing.ledger import Bookkeeper
from ..costing.shares import split_steps
from ..events import (
    INTERVALS,
    REQUESTS,
    SHARES,
    STEPS,
    Batch,
    DecodeRun,
    Interval,
    Progress,
    Request,
    Run,
    Share,
    Step,
)
from ..roofline import StepModel
from .backlog import Backlog
from .expand import expand

if TYPE_CHECKING:
    from .keeper import BatchStream, Keeper
    from .retold import Retold


class Told(NamedTuple):
    """Events that were recorded before."""

    steps: list[Step]
    shares: list[Share]
    requests: list[Request]
    runs: list[DecodeRun]


HOT_FLUSH_S, BULK_FLUSH_S = 0.45, 0.7
"""What is older is in the store: with the time that a flush takes, a crash loses less than a second."""
FLUSH_STEPS = 65_536


class Recorder:
    """A `Sink` for one run that keeps events in memory until `flush` splits, books and stores them.

    A run that is told again is recorded once: what the store's progress covers is skipped, the rest is added. That is
    how an interrupted virtual run is completed, and why repeating a finished one changes nothing.
    """

    def __init__(
        self,
        store: Keeper,
        *,
        bulk: bool,
        stream: BatchStream | None = None,
        append: Callable[[Batch], None] | None = None,
        retold: Retold | None = None,
    ) -> None:
        """Record into `store`; `bulk` writes straight into the archive (runs at full speed), by a `stream` if given.

        `append` takes batches in the store's place; `retold` compares what is told again with what is recorded.
        """
        straight = store.append_archive if stream is None else stream.append
        self._write = straight if bulk else Backlog(store, append or store.append).put
        self._flush_s = BULK_FLUSH_S if bulk else HOT_FLUSH_S
        self._store = store
        self._steps: list[Step] = []
        self._shares: list[Share] = []
        self._requests: list[Request] = []
        self._intervals: list[Interval] = []
        self._runs: list[DecodeRun] = []
        self._retold = retold
        self._again = Told([], [], [], [])
        self._kept = 0
        self._first_seq = 0
        self._skip_requests = 0
        self._run: Run | None = None
        self._recorded: Run | None = None
        self._books: Bookkeeper | None = None
        self._model: StepModel | None = None
        self._progress = Progress(0, 0, 0)
        self._told = 0
        self._flushed_at = time.monotonic()

    @property
    def told(self) -> int:
        """Requests told so far, recorded before or not."""
        return self._told

    @property
    def kept(self) -> int:
        """Steps kept in memory until the next flush."""
        return self._kept

    @property
    def has_ended(self) -> bool:
        """Whether the run has told its end: nothing comes after it."""
        return self._run is not None and self._run.ended_ns is not None

    def run(self, run: Run) -> None:
        """Take note of the run's newest state; the first call opens its books."""
        if self._run is None:
            self._open(run)
        self._run = run

    def step(self, step: Step, cells: Sequence[Share]) -> None:
        """Keep a step and its cells until the next flush."""
        if step.step_seq < self._first_seq:
            if self._retold is not None:
                self._again.steps.append(step)
                self._again.shares.extend(cells)
            return
        self._steps.append(step)
        self._shares.extend(cells)
        self._kept += 1

    def interval(self, interval: Interval) -> None:
        """Keep what a page said about the time that one pseudo-step stands for; tell it with that step."""
        if interval.step_seq >= self._first_seq:
            self._intervals.append(interval)

    def decodes(self, run: DecodeRun) -> None:
        """Keep a run of decode steps until the next flush spells it out."""
        if run.first_seq < self._first_seq and self._retold is not None:
            self._again.runs.append(run)
        if run.first_seq + run.steps <= self._first_seq:
            return
        self._runs.append(run)
        self._kept += run.steps

    def request(self, request: Request) -> None:
        """Keep a request until the next flush."""
        self._told += 1
        if self._skip_requests:
            self._skip_requests -= 1
            if self._retold is not None:
                self._again.requests.append(request)
            return
        self._requests.append(request)

    def flush_if_due(self) -> bool:
        """Flush when it is time or the buffer is full; true if it did."""
        if self._kept < FLUSH_STEPS and time.monotonic() - self._flushed_at < self._flush_s:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """Split, book and store all that has been told so far, in one transaction."""
        self._flushed_at = time.monotonic()
        run, books = self._run, self._books
        if run is None or books is None:
            return
        if self._is_contradicted(run) or self._replaying(run):
            return
        batch = self._batch(run, books)
        if batch.run == self._recorded and not (batch.steps.num_rows or batch.requests.num_rows):
            return
        self._write(batch)
        self._recorded, self._progress = batch.run, batch.progress

    def _is_contradicted(self, run: Run) -> bool:
        """Whether what was told again is recorded with other content: then nothing more of the run is kept."""
        if self._retold is None:
            return False
        if not self._retold.count:
            self._compare_again(run, self._retold)
        if self._retold.count:
            self._forget_told()
        return bool(self._retold.count)

    def _compare_again(self, run: Run, retold: Retold) -> None:
        again, self._again = self._again, Told([], [], [], [])
        steps, shares = STEPS.to_arrow(again.steps), SHARES.to_arrow(again.shares)
        if again.runs:
            more = expand(run, again.runs)
            known = pc.field("step_seq") < self._first_seq
            steps = pa.concat_tables([steps, more[0].filter(known).cast(STEPS.schema)])
            shares = pa.concat_tables([shares, more[1].filter(known).cast(SHARES.schema)])
        retold.compare(steps, shares, REQUESTS.to_arrow(again.requests))

    def _open(self, run: Run) -> None:
        known = self._store.progress(run.engine_id, run.run_id)
        if known is not None:
            self._progress = known
            self._first_seq, self._skip_requests = known.steps, known.requests
            self._recorded = self._store.run(run.engine_id, run.run_id)
        else:
            self._progress = Progress(0, 0, run.started_ns)
        self._books = Bookkeeper(run, self._progress.covered_ns, self._progress.steps)
        self._model = StepModel.from_json(run.step_model) if run.step_model else None

    def _replaying(self, run: Run) -> bool:
        """True while everything told so far was recorded before."""
        told_before = run.wall_end_ns < self._progress.covered_ns
        return told_before and not self._kept and not self._requests

    def _batch(self, run: Run, books: Bookkeeper) -> Batch:
        steps, shares = self._told_steps(run)
        requests = REQUESTS.to_arrow(self._requests)
        steps, shares = split_steps(steps, shares, self._model, measured=run.clock == "real")
        ledger = books.book(steps, shares, requests, run.wall_end_ns)
        progress = Progress(books.steps, self._progress.requests + len(self._requests), books.covered_ns)
        intervals = INTERVALS.to_arrow(self._intervals) if self._intervals else None
        self._forget_told()
        run = run._replace(heartbeat_ns=books.covered_ns)
        return Batch(run, steps, shares, requests, ledger, progress, intervals)

    def _forget_told(self) -> None:
        self._steps, self._shares, self._requests, self._runs, self._kept = [], [], [], [], 0
        self._intervals, self._again = [], Told([], [], [], [])

    def _told_steps(self, run: Run) -> tuple[pa.Table, pa.Table]:
        """Everything kept, one row per step and one per cell, in the order of steps."""
        steps, shares = STEPS.to_arrow(self._steps), SHARES.to_arrow(self._shares)
        if not self._runs:
            return steps, shares
        more_steps, more_shares = expand(run, self._runs)
        return self._in_order(steps, more_steps), self._in_order(shares, more_shares)

    def _in_order(self, told: pa.Table, expanded: pa.Table) -> pa.Table:
        """Both parts by step; what the store has of a run that is told again stays out."""
        both: Any = pa.concat_tables([told, expanded])
        step_seq = ints(both, "step_seq")
        order = np.argsort(step_seq, kind="stable")
        return both.take(pa.array(order[step_seq[order] >= self._first_seq]))
