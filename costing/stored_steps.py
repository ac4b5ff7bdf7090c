"""Stored steps with their cells, read back in order and in bounded memory, whatever the order of files.

They are put aside in a temporary file, and read from there in order of step numbers.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..events import SHARES, STEPS, Run
from . import arrow
from .cells import CELL_ORDER

STEP_COLUMNS = (
    "engine_id",
    "run_id",
    "step_seq",
    "started_ns",
    "duration_ns",
    "idle_before_ns",
    "gpus",
    "prefill_ns",
    "decode_ns",
    "running",
    "held_by",
    "basis",
)
_compute: Any = pc


@contextmanager
def stored_steps(
    run: Run, step_batches: Iterable[pa.RecordBatch], share_batches: Iterable[pa.RecordBatch]
) -> Generator[Iterator[tuple[pa.Table, pa.Table]], None, None]:
    """Lend the run's steps and their cells, some at a time; cells without a step come last, with no steps.

    Batches hold at least STEP_COLUMNS and all columns of SHARES; each rises in step_seq for any one run, batches come
    in any order, and rows of other runs are skipped.
    """
    with (
        _ordered(run, step_batches, STEP_COLUMNS, ("step_seq",)) as steps,
        _ordered(run, share_batches, SHARES.schema.names, ("step_seq", *CELL_ORDER)) as shares,
    ):
        yield _together(steps, shares)


def _of_run(run: Run, batch: pa.RecordBatch) -> pa.RecordBatch:
    same_engine = _compute.equal(batch.column("engine_id"), run.engine_id)
    return batch.filter(_compute.and_(same_engine, _compute.equal(batch.column("run_id"), run.run_id)))


@contextmanager
def _ordered(
    run: Run, batches: Iterable[pa.RecordBatch], names: Sequence[str], order: Sequence[str]
) -> Generator[Iterator[pa.Table], None, None]:
    """Lend the run's rows as tables that continue each other in `order`, which begins with step_seq."""
    with tempfile.TemporaryDirectory(prefix="farebox-") as folder:
        path = f"{folder}/rows.arrow"
        firsts = _put_aside(path, run, batches, names)
        if not firsts:
            yield iter(())
            return
        with pa.memory_map(path) as source:
            yield _in_order(pa.ipc.open_file(source), firsts, order)


def _put_aside(path: str, run: Run, batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> list[int]:
    """Write the run's rows to a file, a batch for a batch; returns the lowest step number of each."""
    firsts: list[int] = []
    writer: Any = None
    for batch in batches:
        rows: Any = _of_run(run, batch).select(list(names))
        if not rows.num_rows:
            continue
        if writer is None:
            writer = pa.ipc.new_file(path, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4"))
        writer.write_batch(rows)
        firsts.append(_compute.min(rows.column("step_seq")).as_py())
    if writer is not None:
        writer.close()
    return firsts


def _in_order(rows: Any, firsts: Sequence[int], order: Sequence[str]) -> Iterator[pa.Table]:
    """Batches by their lowest step; a step goes on once no later batch can have a row of it."""
    by_first = sorted(range(len(firsts)), key=firsts.__getitem__)
    waiting: pa.Table = rows.schema.empty_table()
    for batch, following in zip_longest(by_first, by_first[1:]):
        waiting = pa.concat_tables([waiting, pa.Table.from_batches([rows.get_batch(batch)])])
        seq = arrow.ints(waiting, "step_seq")
        complete = seq < firsts[following] if following is not None else np.ones(len(seq), np.bool_)
        if complete.any():
            ready = arrow.where(waiting, complete)
            rising = (np.diff(seq[complete]) >= 0).all()
            yield ready if rising else ready.sort_by([(name, "ascending") for name in order])
            waiting = arrow.where(waiting, ~complete)


def _together(steps: Iterator[pa.Table], shares: Iterator[pa.Table]) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Steps with their cells; cells without a step come last, with no steps."""
    waiting, reached = SHARES.to_arrow([]), -1
    no_steps = STEPS.to_arrow([])
    for some in steps:
        last = int(arrow.ints(some, "step_seq")[-1])
        while reached <= last and (more := next(shares, None)) is not None:
            waiting, reached = pa.concat_tables([waiting, more]), int(arrow.ints(more, "step_seq")[-1])
        ready = arrow.ints(waiting, "step_seq") <= last
        yield some, arrow.where(waiting, ready)
        waiting = arrow.where(waiting, ~ready)
    waiting = pa.concat_tables([waiting, *shares])
    if waiting.num_rows:
        yield no_steps, waiting
