"""Emptiness: what the free seats of a batch cost that somebody's cap kept small while others waited.

Emptiness of a batch held to n < b seats is E = T(n) − n·T(b)/b: what its riders pay more than in a batch of b. T(k) is
the step model's time for k equal decodes, each with the step's mean attention, so that long contexts, which empty seats
do not cause, are never counted as emptiness. With T(k) = o + L(k) + attention it is E = o + L(n) − n·(o + L(b))/b.

E is a time, so it is the part E/v(N) of the step. In a step of decodes v(N) is T(n); where a prompt is computed as well
the step is longer, and its empty seats cost no more for that.

The tenant whose cap it was pays, in its fast decode cell, or else in its first. The operator's own cap, and that of a
tenant who has no cell in the step to pay with, go to `underfill`; the latter keeps the tenant as a label.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..events import Share, Step
from ..roofline.step_model import StepModel
from . import arrow
from .cells import NARROW, Cells
from .rule import SplitError, split_step
from .segments import Bools, Ints, multiply_divide

REFERENCE_OCCUPANCY = 32
"""b: a batch of so many riders has no empty seats worth speaking of."""
OPERATOR = "operator"
"""`held_by` when the cap is the operator's own."""
_compute: Any = pc


def empty_part(model: StepModel, riders: int, rows: int, attention: int) -> Fraction:
    """Part of a step of `riders` sequences and `rows` rows that is emptiness, in [0, 1).

    `attention` is Σ a_i in 2⁻²⁰ ns.
    """
    full = REFERENCE_OCCUPANCY
    whole = full * model.step(max(rows, riders), attention)
    if not 0 < riders < full or not whole:
        return Fraction(0)
    return Fraction(full * _alone(model, riders) - riders * _alone(model, full), whole)


def _alone(model: StepModel, riders: int) -> int:
    """L: a step of so many decodes without their attention, in 2⁻²⁰ ns."""
    return model.step(riders, 0)


def empty_ns(step: Step, cells: Sequence[Share], model: StepModel | None) -> int:
    """Whole nanoseconds of a step, of one GPU, that are emptiness; 0 unless it was held, or without a model."""
    if model is None or step.held_by is None:
        return 0
    part = empty_part(model, step.running, sum(cell.rows for cell in cells), sum(cell.attn for cell in cells))
    return step.duration_ns * part.numerator // part.denominator


def fill_cells(step: Step, cells: Sequence[Share], model: StepModel | None, measured: bool) -> list[Share]:
    """The cells of one step with their GPU time: the definition of what `shares.split_steps` does by columns.

    Emptiness is cut off in whole nanoseconds, and the riders share the others by the integer rule as if measured.
    """
    empty = empty_ns(step, cells, model)
    ns = split_step(cells, model, step.duration_ns - empty, 1, measured or empty > 0)
    filled = [cell._replace(gpu_ns=one * step.gpus) for cell, one in zip(cells, ns, strict=True)]
    if not empty:
        return filled
    own = [cell for cell in filled if cell.account == "tenant" and cell.tenant_id == step.held_by != OPERATOR]
    if not own:
        return [*filled, _underfill(step)._replace(gpu_ns=empty * step.gpus)]
    payer = next((cell for cell in own if (cell.tier, cell.phase) == ("fast", "decode")), own[0])
    return [c._replace(gpu_ns=(c.gpu_ns or 0) + empty * step.gpus) if c is payer else c for c in filled]


def _underfill(step: Step) -> Share:
    """The cell of empty seats: nobody's sequences, no rows."""
    label = "" if step.held_by in (None, OPERATOR) else step.held_by
    key = (step.engine_id, step.run_id, step.step_seq, step.started_ns)
    return Share(*key, "underfill", label, "", "decode", 0, 0, 0, 0, 0, 0, None)


def empty_times(steps: pa.Table, cells: Cells, at: Ints, model: StepModel | None) -> Ints:
    """`empty_ns` of every step that has cells (int64[segments]); `at` is each one's row in `steps`."""
    empty = np.zeros(len(at), np.int64)
    held: Bools = steps.column("held_by").is_valid().to_numpy()[at]
    if model is None or not held.any():
        return empty
    riders = arrow.counts(steps, "running", SplitError)[at]
    held &= (riders > 0) & (riders < REFERENCE_OCCUPANCY)
    wide = cells.wide(model)
    if REFERENCE_OCCUPANCY * model.most_per_row > NARROW:
        wide[:] = True
    some = held & ~wide
    if some.any():
        in_some = some[cells.segments.of]
        rows, attention = (
            cells.segments.sum(np.where(in_some, column, 0))[some] for column in (cells.rows, cells.attn)
        )
        empty[some] = _columns(model, riders[some], rows, attention, cells.duration[some])
    for segment in np.flatnonzero(held & wide).tolist():
        alike = cells.shares(segment)
        rows, attention = sum(cell.rows for cell in alike), sum(cell.attn for cell in alike)
        part = empty_part(model, int(riders[segment]), rows, attention)
        empty[segment] = int(cells.duration[segment]) * part.numerator // part.denominator
    return empty


def _columns(model: StepModel, riders: Ints, rows: Ints, attention: Ints, duration: Ints) -> Ints:
    full = REFERENCE_OCCUPANCY
    alone = np.array([_alone(model, count) for count in range(full + 1)], np.int64)
    unpaid = full * alone - np.arange(full + 1) * alone[full]
    computed = np.maximum(rows, riders)
    whole = full * model.step_column(computed, attention)
    empty, _ = multiply_divide(duration, np.where(whole > 0, unpaid[riders], 0), np.maximum(whole, 1))
    return empty


def payers(steps: pa.Table, shares: pa.Table, cells: Cells, at: Ints) -> Bools:
    """The cell of each held step that pays for its emptiness (bool[rows]); none where that is `underfill`."""
    held_by = arrow.texts(steps, "held_by", at[cells.segments.of])
    own = _compute.and_(_compute.equal(shares.column("tenant_id"), held_by), _compute.not_equal(held_by, OPERATOR))
    own = _compute.fill_null(own, False).to_numpy() & arrow.equals(shares, "account", "tenant")
    fast = arrow.equals(shares, "tier", "fast") & arrow.equals(shares, "phase", "decode")
    fitness = own.astype(np.int64) + (own & fast)
    best = own & (fitness == cells.segments.max(fitness)[cells.segments.of])
    return best & (cells.segments.cumulate(best.astype(np.int64)) == 1)


def add_underfill(shares: pa.Table, steps: pa.Table, rows: Ints, gpu_ns: Ints) -> pa.Table:
    """`shares` with a cell of empty seats for each of the steps in `rows` (int64[cells]), in cell order.

    Raises SplitError where a step has a cell of that account already.
    """
    if not len(rows):
        return shares
    some = arrow.pick(steps, rows)
    _refuse_second(shares, arrow.ints(some, "step_seq"))
    held_by, zeros = some.column("held_by"), np.zeros(len(rows), np.int64)
    columns: dict[str, Any] = {name: pa.array(zeros) for name in shares.column_names}
    columns |= {name: some.column(name) for name in ("engine_id", "run_id", "step_seq", "started_ns")}
    names = {"account": "underfill", "tier": "", "phase": "decode"}
    columns |= {name: arrow.same(text, len(rows)) for name, text in names.items()}
    columns["tenant_id"] = _compute.if_else(_compute.equal(held_by, OPERATOR), "", held_by)
    columns["gpu_ns"] = pa.array(gpu_ns)
    added: Any = pa.table(list(columns.values()), schema=shares.schema)
    both = pa.concat_tables([shares, added])
    return arrow.pick(both, np.argsort(arrow.ints(both, "step_seq"), kind="stable"))


def _refuse_second(shares: pa.Table, step_seq: Ints) -> None:
    booked = arrow.ints(shares, "step_seq")[arrow.equals(shares, "account", "underfill")]
    twice = np.intersect1d(booked, step_seq)
    if len(twice):
        raise SplitError(f"step {twice[0]} has its empty seats already: split it without its underfill cell")
