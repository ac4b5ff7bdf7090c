"""Recorded steps as measurements: what a store knows of how long steps took."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..events import SHARES, STEPS, Run
from ..roofline import Replica, SpecError, StepModel, gpu, model
from ..roofline.calibration.timings import Timing
from ..roofline.work import Work

if TYPE_CHECKING:
    import pyarrow as pa

    from ..storage.store import Store

    Ints = NDArray[np.int64]

MOST_STEPS = 2000
"""Steps of a run that are enough for a fit; they are taken evenly from all."""
STEP_COLUMNS = (
    "step_seq", "duration_ns", "prefill_seqs", "decode_seqs", "prefill_tokens", "decode_tokens", "flops", "basis",
)  # fmt: skip
SHARE_COLUMNS = ("step_seq", "phase", "attn")


class Recorded(NamedTuple):
    """Steps of a store, and why those of some runs are missing."""

    timings: list[Timing]
    problems: list[str]


def recorded_timings(store: Store) -> Recorded:
    """Steps of all runs whose GPU, model and step model are known; at most `MOST_STEPS` of each."""
    found = Recorded([], [])
    for run in store.runs():
        try:
            found.timings.extend(_of_run(store, run))
        except SpecError as error:
            found.problems.append(f"run {run.run_id} of {run.engine_id}: {error}")
    return found


def _of_run(store: Store, run: Run) -> Iterator[Timing]:
    if run.step_model is None:
        raise SpecError("it has no step model, and without one its steps do not tell how much KV they read")
    constants = StepModel.from_json(run.step_model)
    replica = Replica(gpu(run.gpu_type), model(run.model), run.weights, run.gpus)
    steps, shares = (
        store.read(table, names, start_ns=run.started_ns, end_ns=run.wall_end_ns, engine_id=run.engine_id)
        for table, names in ((STEPS, STEP_COLUMNS), (SHARES, SHARE_COLUMNS))
    )
    steps = _sampled(steps)
    seq = _ints(steps, "step_seq")
    seen = _decode_attention(shares, seq) // max(constants.kv_token, 1)
    prompt_rows = _ints(steps, "prefill_tokens")
    rows, decodes = prompt_rows + _ints(steps, "decode_tokens"), _ints(steps, "decode_seqs")
    seqs = decodes + _ints(steps, "prefill_seqs")
    all_pairs = (_ints(steps, "flops") - constants.flops_row * rows) // max(constants.flops_pair, 1)
    pairs = np.where(prompt_rows > 0, np.maximum(all_pairs - seen, 0), 0)
    columns = (rows, seqs, decodes, seen, prompt_rows, pairs, _ints(steps, "duration_ns"))
    for *work, duration in zip(*(column.tolist() for column in columns), strict=True):
        if duration > 0 and work[0] > 0:
            yield Timing(replica, Work(*work), "prefill" if work[4] else "decode", duration / 1e6)


def _sampled(steps: pa.Table) -> pa.Table:
    """Evenly chosen ones of the steps that were measured as such."""
    measured = np.array([basis == "step" for basis in steps.column("basis").to_pylist()], np.bool_)
    rows = np.flatnonzero(measured & steps.column("flops").is_valid().to_numpy())
    if len(rows) > MOST_STEPS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_STEPS).astype(np.int64)]
    return steps.take(rows)


def _decode_attention(shares: pa.Table, seq: Ints) -> Ints:
    """Σ a_i of the decode cells of each step in `seq` (int64[steps], rising), in clock units."""
    of, attn = _ints(shares, "step_seq"), _ints(shares, "attn")
    decodes = np.array([phase == "decode" for phase in shares.column("phase").to_pylist()], np.bool_)
    place = np.minimum(np.searchsorted(seq, of), max(len(seq) - 1, 0))
    total = np.zeros(len(seq), np.int64)
    if len(seq):
        ours = decodes & (seq[place] == of)
        np.add.at(total, place[ours], attn[ours])
    return total


def _ints(table: pa.Table, name: str) -> Ints:
    return table.column(name).to_numpy().astype(np.int64)
