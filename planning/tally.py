"""The tally: what a replay comes to, kept in memory instead of a store, and booked as a store's would be."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..costing import arrow
from ..costing.ledger import Bookkeeper
from ..events import LEDGER, REQUESTS, SHARES, STEPS, Batch, Progress, Run, Table

KEPT = (
    "engine_id", "run_id", "request_id", "tenant_id", "tier", "arrived_ns", "scheduled_ns", "first_token_ns",
    "finished_ns", "prompt_tokens", "cached_tokens", "output_tokens", "finish_reason", "preemptions",
)  # fmt: skip
"""What is kept of a request."""
_CODED = pa.dictionary(pa.int32(), pa.string())
_NAMED: pa.Schema = pa.schema(
    [(name, _CODED if REQUESTS.schema.field(name).type == pa.string() else pa.int64()) for name in KEPT]
)
_SCHEMA = _NAMED.set(KEPT.index("request_id"), REQUESTS.schema.field("request_id"))
"""Names are coded; ids, which never come twice, are not."""


class Steps(NamedTuple):
    """Sums over the steps of a run. Arithmetic and memory traffic are figures for people, not money: floats."""

    steps: int = 0
    busy_ns: int = 0
    running_ns: int = 0
    """Riders × time."""
    seat_ns: int = 0
    """Seats × time in steps."""
    busy_gpu_ns: int = 0
    preemptions: int = 0
    recomputed_tokens: int = 0
    flops: float = 0.0
    most_flops: float = 0.0
    """What the GPUs' datasheets allow in that time; 0 where there is none."""
    bytes: float = 0.0
    most_bytes: float = 0.0
    most_riders: int = 0
    """The most that rode in one step."""

    def plus(self, other: Steps) -> Steps:
        """Both added up."""
        sums: Any = (mine + its for mine, its in zip(self, other, strict=True))
        return Steps._make(sums)._replace(most_riders=max(self.most_riders, other.most_riders))


class Lived(NamedTuple):
    """A run that was replayed: its record, its ledger lines (LEDGER schema), its requests (KEPT) and its steps."""

    run: Run
    ledger: pa.Table
    requests: pa.Table
    steps: Steps


class Tally:
    """A `Keeper` and `BatchStream` of one run; `close` says when it was up."""

    def __init__(self) -> None:
        self._run: Run | None = None
        self._told = Progress(0, 0, 0)
        self._ledger: list[pa.Table] = []
        self._requests: list[pa.Table] = []
        self._steps = Steps()

    def progress(self, engine_id: str, run_id: str) -> Progress | None:
        """Nothing is known of any run before it begins."""
        return None

    def run(self, engine_id: str, run_id: str) -> Run | None:
        """Nor the run itself."""
        return None

    def put(self, table: Table, record: tuple[Any, ...]) -> None:
        """A replay has no settings."""

    def append(self, batch: Batch) -> None:
        """Add a batch up."""
        self._run, self._told = batch.run, batch.progress
        self._ledger.append(batch.ledger)
        self._requests.append(kept(batch.requests))
        self._steps = self._steps.plus(steps_of(batch.run, batch.steps))

    append_archive = append

    def end(self, run: Run, progress: Progress) -> None:
        """Take note of the end."""
        self._run, self._told = run, progress

    def lived(self) -> Lived:
        """The run as it was told, to its end."""
        if self._run is None:
            raise ValueError("nothing was told of this run")
        return self.close(self._run, None)

    def close(self, run: Run, ends_ns: int | None) -> Lived:
        """The run as `run` records its beginning, up until `ends_ns` (UTC) or, if that is later, its last step.

        Time before the first batch and after the last one is booked as it would be while it passes: loading or idle.
        """
        told = self._run
        start_ns = run.started_ns if told is None else told.started_ns
        end_ns = max(start_ns if told is None else told.wall_end_ns, ends_ns or 0)
        whole = run._replace(heartbeat_ns=end_ns, ended_ns=end_ns)
        parts = [*self._ledger]
        if told is None or start_ns > run.started_ns:
            parts.append(book_nothing(Bookkeeper(whole), start_ns if told is not None else end_ns))
        if told is not None and end_ns > self._told.covered_ns:
            parts.append(book_nothing(Bookkeeper(whole, self._told.covered_ns, self._told.steps), end_ns))
        return Lived(whole, one_ledger(parts), _requests(self._requests), self._steps)


def steps_of(run: Run, steps: pa.Table) -> Steps:
    """Sum up steps of a run (rows with the columns of STEPS)."""
    duration, running = arrow.ints(steps, "duration_ns"), arrow.ints(steps, "running")
    busy_ns = int(duration.sum())
    flops, moved = (_total(steps, name) for name in ("flops", "bytes"))
    most_flops, most_bytes = _peaks(run)
    seconds = busy_ns / 1e9
    return Steps(
        steps=steps.num_rows,
        busy_ns=busy_ns,
        running_ns=int((duration * running).sum()),
        seat_ns=busy_ns * (run.max_num_seqs or 0),
        busy_gpu_ns=busy_ns * run.gpus,
        preemptions=int(arrow.ints(steps, "preemptions").sum()),
        recomputed_tokens=int(arrow.ints(steps, "recomputed_tokens").sum()),
        flops=flops,
        most_flops=most_flops * seconds,
        bytes=moved,
        most_bytes=most_bytes * seconds,
        most_riders=int(running.max(initial=0)),
    )


def _total(steps: pa.Table, name: str) -> float:
    """Sum of a column that may not be known, and whose integer sum may not fit."""
    column: Any = steps.column(name)
    return float(column.fill_null(0).to_numpy().sum(dtype=np.float64)) if len(column) else 0.0


def _peaks(run: Run) -> tuple[float, float]:
    """Datasheet FLOP/s and bytes/s of a run's GPUs together; 0 for a GPU that is not known."""
    from ..roofline import gpu
    from ..roofline.errors import SpecError

    try:
        device = gpu(run.gpu_type)
    except SpecError:
        return 0.0, 0.0
    return device.peak_flops(run.weights) * run.gpus, device.bandwidth * run.gpus


def book_nothing(books: Bookkeeper, until_ns: int) -> pa.Table:
    """Ledger lines of time in which no step was taken."""
    steps, shares, requests = (table.schema.empty_table() for table in (STEPS, SHARES, REQUESTS))
    return books.book(steps, shares, requests, until_ns)


def one_ledger(parts: list[pa.Table]) -> pa.Table:
    """All lines, those of one key added up."""
    whole = pa.concat_tables([part.cast(LEDGER.schema) for part in parts])
    return arrow.total_by(whole, LEDGER.key).cast(LEDGER.schema)


def kept(requests: pa.Table) -> pa.Table:
    """What is kept of requests, whoever tells them."""
    return requests.select(KEPT).cast(_SCHEMA)


def _requests(parts: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(parts).unify_dictionaries() if parts else _SCHEMA.empty_table()
