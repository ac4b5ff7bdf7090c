"""Runs of decode steps, spelled out: one row per step and one per cell, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..costing.arrow import words
from ..costing.segments import Ints
from ..events import PART_BITS, SHARES, STEPS, DecodeRun, Run, Table
from ..roofline import UNIT_BITS, StepModel

_MASK = (1 << UNIT_BITS) - 1
_PART_MASK = (1 << PART_BITS) - 1


def expand(run: Run, runs: Sequence[DecodeRun]) -> tuple[pa.Table, pa.Table]:
    """The steps and cells (STEPS and SHARES schema) of an engine's decode runs, as if told one by one, in their order.

    Raises ValueError when the run record has no step model: a leap needs one.
    """
    if run.step_model is None:
        raise ValueError(f"run {run.run_id} of {run.engine_id} leaps over steps, but its step model is unknown")
    if not runs:
        return STEPS.to_arrow([]), SHARES.to_arrow([])
    model = StepModel.from_json(run.step_model)
    lead = _Lead.of(runs)
    return _steps(run, model, runs, lead), _shares(run, runs, lead)


class _Lead(NamedTuple):
    """What all columns are made from: per run, and per step."""

    seqs: Ints
    """Sequences, per run."""
    counts: Ints
    """Steps, per run."""
    of_run: Ints
    """The run of each step."""
    number: Ints
    """The number of each step in its run, from 0."""
    started_ns: Ints
    duration_ns: Ints
    seen: Ints
    """Tokens that each step's rows look at."""

    @classmethod
    def of(cls, runs: Sequence[DecodeRun]) -> _Lead:
        counts = _ints(run.steps for run in runs)
        seqs = _ints(sum(group.seqs for group in run.groups) for run in runs)
        seen = _ints(sum(group.seen for group in run.groups) for run in runs)
        of_run = np.repeat(np.arange(len(runs)), counts)
        index = np.arange(len(of_run)) - np.repeat(np.cumsum(counts) - counts, counts)
        clock_ns = _ints(run.base_ns + (run.clock >> UNIT_BITS) for run in runs)
        fraction = _ints(run.clock & _MASK for run in runs)
        base_units, token_units = _ints(run.base_units for run in runs), _ints(run.token_units for run in runs)

        def at(step: Ints) -> Ints:
            """Nanoseconds from the run's first whole one to the start of a step."""
            looked_at = seen[of_run] * step + seqs[of_run] * (step * (step - 1) // 2)
            return (fraction[of_run] + base_units[of_run] * step + token_units[of_run] * looked_at) >> UNIT_BITS

        begin, end = at(index), at(index + 1)
        return cls(
            seqs, counts, of_run, index, clock_ns[of_run] + begin, end - begin, seen[of_run] + seqs[of_run] * index
        )


def _steps(run: Run, model: StepModel, runs: Sequence[DecodeRun], lead: _Lead) -> pa.Table:
    size = len(lead.number)
    riders = lead.seqs[lead.of_run]
    idle = np.where(lead.number == 0, _ints(r.idle_before_ns for r in runs)[lead.of_run], 0)
    holders: Any = pa.array([r.held_by for r in runs], pa.string())
    columns: dict[str, Any] = {
        "step_seq": _ints(r.first_seq for r in runs)[lead.of_run] + lead.number,
        "started_ns": lead.started_ns,
        "duration_ns": lead.duration_ns,
        "idle_before_ns": idle,
        "gpus": np.full(size, run.gpus),
        "running": riders,
        "waiting": _ints(r.waiting for r in runs)[lead.of_run],
        "decode_seqs": riders,
        "decode_tokens": riders,
        "output_tokens": riders,
        "kv_blocks_used": _blocks(runs, lead),
        "kv_blocks_total": _ints(r.kv_blocks_total for r in runs)[lead.of_run],
        "held_by": holders.take(pa.array(lead.of_run)),
        "flops": model.flops_row * riders + model.flops_pair * lead.seen,
        "bytes": _ints(model.bytes_read(0, n) for n in lead.seqs.tolist())[lead.of_run]
        + model.kv_token_bytes * lead.seen,
        "basis": pa.repeat("step", size),
    }
    return _table(STEPS, run, size, columns, unknown=("prefill_ns", "decode_ns"))


def _blocks(runs: Sequence[DecodeRun], lead: _Lead) -> Ints:
    """KV blocks held in each step by all of its riders; their parts of shared ones sum to whole ones."""
    crossings = [[sum(added) for added in zip(*(g.crossings for g in r.groups), strict=True)] for r in runs]
    before = (sum(g.blocks for g in r.groups) + (sum(g.shared_parts for g in r.groups) >> PART_BITS) for r in runs)
    return _held(_ints(before), crossings, lead.of_run, lead.number)


def _shares(run: Run, runs: Sequence[DecodeRun], lead: _Lead) -> pa.Table:
    """A row for each group of each step, by step and within a step in the groups' order."""
    groups = list(chain.from_iterable(r.groups for r in runs))
    per_run = _ints(len(r.groups) for r in runs)
    first_group = np.cumsum(per_run) - per_run
    per_step = per_run[lead.of_run]
    step = np.repeat(np.arange(len(lead.number)), per_step)
    within = np.arange(len(step)) - np.repeat(np.cumsum(per_step) - per_step, per_step)
    group = first_group[lead.of_run[step]] + within
    index = lead.number[step]
    seqs = _ints(g.seqs for g in groups)[group]
    blocks = _held(_ints(g.blocks for g in groups), [g.crossings for g in groups], group, index)
    token_units = _ints(r.token_units for r in runs)[lead.of_run[step]]
    size = len(step)
    columns: dict[str, Any] = {
        "step_seq": _ints(r.first_seq for r in runs)[lead.of_run[step]] + index,
        "started_ns": lead.started_ns[step],
        "account": pa.repeat("tenant", size),
        "tenant_id": words([g.tenant_id for g in groups], group),
        "tier": words([g.tier for g in groups], group),
        "phase": pa.repeat("decode", size),
        "seqs": seqs,
        "rows": seqs,
        "output_tokens": seqs,
        "attn": token_units * (_ints(g.seen for g in groups)[group] + seqs * index),
        "kv_block_ns": blocks * lead.duration_ns[step] + _shared_block_ns(runs, group, lead.duration_ns[step]),
    }
    return _table(SHARES, run, size, columns, unknown=("gpu_ns",))


def _shared_block_ns(runs: Sequence[DecodeRun], group: Ints, duration_ns: Ints) -> Ints:
    """A group's part of the blocks that prefixes share × time: floor-differences over the groups of a step."""
    after = list(chain.from_iterable(accumulate(g.shared_parts for g in r.groups) for r in runs))
    before = list(chain.from_iterable(accumulate((g.shared_parts for g in r.groups[:-1]), initial=0) for r in runs))

    def block_ns(parts: list[int]) -> Ints:
        whole, fraction = _ints(p >> PART_BITS for p in parts), _ints(p & _PART_MASK for p in parts)
        return whole[group] * duration_ns + (fraction[group] * duration_ns >> PART_BITS)

    return block_ns(after) - block_ns(before)


def _held(before: Ints, crossings: Sequence[Sequence[int]], row: Ints, index: Ints) -> Ints:
    """KV blocks held in step `index` by row `row` of `before` and `crossings`; every block size steps repeat."""
    added = np.cumsum(np.array(crossings, np.int64).reshape(len(before), -1), axis=1)
    size = added.shape[1]
    return before[row] + added[row, index % size] + added[row, -1] * (index // size)


def _table(table: Table, run: Run, size: int, columns: dict[str, Any], unknown: tuple[str, ...]) -> pa.Table:
    """The columns of a table: those given, the run's names, nulls for the unknown; 0 for what decoding never does."""
    names = {"engine_id": run.engine_id, "run_id": run.run_id}
    arrays: list[Any] = []
    for column in table.columns:
        if column.name in columns:
            arrays.append(pa.array(columns[column.name]))
        elif column.name in names:
            arrays.append(pa.repeat(names[column.name], size))
        elif column.name in unknown:
            arrays.append(pa.nulls(size, pa.int64()))
        else:
            arrays.append(pa.array(np.zeros(size, np.int64)))
    return pa.Table.from_arrays(arrays, schema=table.schema)


def _ints(values: Any) -> Ints:
    return np.fromiter(values, np.int64)
