"""Another policy on a recorded run: its stored steps split and booked once more, in bounded memory.

Steps and cells are read back in any order of files. They are put aside in a temporary file, read from there in order
of step numbers, and go through the same split and the same bookkeeper as when they were recorded.
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

from ..errors import InputError
from ..events import LEDGER, REQUESTS, SHARES, STEPS, Run
from ..roofline.step_model import StepModel
from . import arrow
from .cells import CELL_ORDER, Cells
from .emptiness import empty_times
from .ledger import Bookkeeper
from .policies import find_policy
from .policy_columns import split_cells
from .rollup import Totals
from .rule import SplitError
from .shares import fill, split_steps

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
_COUNTS = ("gpu_ns", "prompt_tokens", "cached_tokens", "output_tokens", "kv_block_ns")
_compute: Any = pc


def ledger_under(
    policy: str,
    run: Run,
    step_batches: Iterable[pa.RecordBatch],
    share_batches: Iterable[pa.RecordBatch],
) -> pa.Table:
    """The ledger of `run` (LEDGER schema, one line per key) as it would be under another policy, without its requests.

    Batches hold at least STEP_COLUMNS and all columns of SHARES; each rises in step_seq for any one run, batches come
    in any order, and rows of other runs are skipped. Only what tenants pay among each other changes: idle, overhead,
    underfill and unobserved time and the tenants' sum stay, and so does who pays for emptiness. (Time in a hole between
    steps that a heartbeat had told as idle counts as unobserved here.) How many requests there were no policy changes:
    they are `only_requests` of the recorded ledger, which knows of erased ones too. Raises PolicyError for an
    unknown policy, InputError for one that needs the step model of a run without, SplitError and LedgerError where
    steps and shares do not match.
    """
    find_policy(policy)
    model = StepModel.from_json(run.step_model) if run.step_model else None
    if model is None and policy == "shapley":
        raise InputError(f"run {run.run_id} has no step model, which the policy shapley needs")
    keeper, lines = Bookkeeper(run), Totals(LEDGER.schema, LEDGER.key)
    nothing = REQUESTS.to_arrow([])
    with (
        _ordered(run, step_batches, STEP_COLUMNS, ("step_seq",)) as steps,
        _ordered(run, share_batches, SHARES.schema.names, ("step_seq", *CELL_ORDER)) as shares,
    ):
        for some_steps, some_shares in _together(steps, shares):
            split = _split_again(policy, some_steps, some_shares, model, run.clock == "real")
            lines.add(keeper.book(*split, nothing, keeper.covered_ns))
    lines.add(keeper.book(STEPS.to_arrow([]), SHARES.to_arrow([]), nothing, run.wall_end_ns))
    return lines.all().sort_by([(name, "ascending") for name in (*LEDGER.sort, "basis")])


def only_requests(ledger: pa.Table) -> pa.Table:
    """The lines of a ledger that count requests, and nothing but their requests (LEDGER schema)."""
    counting = arrow.where(ledger, arrow.ints(ledger, "requests") > 0)
    nothing = np.zeros(counting.num_rows, np.int64)
    lines: Any = arrow.fill(counting, **dict.fromkeys(_COUNTS, nothing))
    return lines.cast(LEDGER.schema)


def _split_again(
    policy: str, steps: pa.Table, shares: pa.Table, model: StepModel | None, measured: bool
) -> tuple[pa.Table, pa.Table]:
    """Split steps under a policy; what is nobody's doing keeps what it has, so that tenants share what they shared."""
    riders = arrow.where(shares, ~arrow.equals(shares, "account", "underfill"))
    if policy == "roofline":
        return split_steps(steps, riders, model, measured)
    cells, at = Cells.read(steps, riders)
    empty = empty_times(steps, cells, at, model)
    is_tenant = arrow.equals(riders, "account", "tenant")
    gpus = arrow.ints(steps, "gpus", SplitError)[at]
    ns = np.where(is_tenant, 0, arrow.counts(riders, "gpu_ns", SplitError)) // gpus[cells.segments.of]
    left = cells.duration - empty - cells.segments.sum(ns)
    if (left < 0).any():
        raise SplitError(f"step {cells.step_seq[np.argmax(left < 0)]}: its overhead is more than its riders had to pay")
    tenants = cells._replace(duration=left).filter(is_tenant)
    ns[is_tenant] = split_cells(tenants, model, policy, np.zeros(len(tenants.duration), np.bool_))
    return fill(steps, riders, cells, at, ns, empty)


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
