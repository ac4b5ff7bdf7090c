"""Shares: who pays for which nanosecond of a step, by one integer rule.

`split_step` is the definition, in plain integers; `split_steps` is the same rule over whole tables. A cell's weight
X is its part of the step's overhead (by sequences), of the linear layers (by rows), and its own attention.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..events import SHARES, Share
from ..roofline.step_model import UNIT_BITS, UNITS_PER_NS, StepModel
from . import arrow
from .apportion import apportion, top_up
from .segments import Bools, Ints, Segments, multiply_divide

NARROW_BITS = 50
"""Steps whose times stay below 2⁵⁰ units (18 minutes of 2⁻²⁰ ns) are split by columns, others one by one."""
NARROW = 1 << NARROW_BITS
NARROW_COUNT = 1 << 30
CELL_ORDER = ("account", "tenant_id", "tier", "phase")


class SplitError(ValueError):
    """Steps and cells that cannot be split: not in order, without a match, or not the step model's time."""


def split_step(
    cells: Sequence[Share], model: StepModel | None, duration_ns: int, gpus: int, measured: bool
) -> list[int]:
    """GPU-nanoseconds of each cell of one step; they sum to `duration_ns · gpus`.

    Nanoseconds are rounded for one GPU and then multiplied, since a replica's GPUs work in lock step. Without a model
    the split is by rows. Raises SplitError for a step without cells, and for one that is not `measured` and yet does
    not take the model's time.
    """
    if not cells:
        if duration_ns:
            raise SplitError(f"{duration_ns} ns have no cell to pay for them")
        return []
    if measured:
        weights = cell_weights(cells, model)
        if not any(weights):
            weights = cell_weights(cells, None)
        return [gpus * ns for ns in apportion(duration_ns, weights)]
    if model is None:
        raise SplitError("a step that was not measured needs the step model that timed it")
    parts = [divmod(weight, UNITS_PER_NS) for weight in cell_weights(cells, model)]
    floors = [ns for ns, _ in parts]
    try:
        exact = top_up(floors, [rest for _, rest in parts], duration_ns - sum(floors))
    except ValueError:
        raise SplitError(f"{duration_ns} ns is not the time that the step model gives") from None
    return [gpus * ns for ns in exact]


def cell_weights(cells: Sequence[Share], model: StepModel | None) -> list[int]:
    """X of each cell in 2⁻²⁰ ns, summing to the step's modelled time; its rows when there is no model."""
    rows, seqs = [cell.rows for cell in cells], [cell.seqs for cell in cells]
    if model is None:
        return _key(rows, seqs)
    overhead = _floor_split(model.overhead, _key(seqs, rows))
    linear = _floor_split(model.linear(sum(rows)), _key(rows, seqs))
    return [o + shared + cell.attn for o, shared, cell in zip(overhead, linear, cells, strict=True)]


def _key(counts: list[int], others: list[int]) -> list[int]:
    """`counts`, or `others` when they are all zero, or the first cell when those are too."""
    if any(counts):
        return counts
    return others if any(others) else [1] + [0] * (len(counts) - 1)


def _floor_split(amount: int, counts: list[int]) -> list[int]:
    """Split `amount` by floor-differences of amount · cumulated count / total."""
    total = sum(counts)
    floors = [amount * count // total for count in accumulate(counts, initial=0)]
    return [after - before for before, after in pairwise(floors)]


def split_steps(
    steps: pa.Table, shares: pa.Table, model: StepModel | None, measured: bool
) -> tuple[pa.Table, pa.Table]:
    """`split_step` for every step of one run: both tables with gpu_ns, prefill_ns and decode_ns filled in.

    `steps` (STEPS schema) must rise in step_seq, `shares` (SHARES schema) in (step_seq, account, tenant_id, tier,
    phase). prefill_ns is the prefill cells' part of the duration, decode_ns the rest. Raises SplitError where tables
    are out of order or do not match, or where `split_step` would.
    """
    cells = _Cells.read(steps, shares, model, measured)
    ns = np.zeros(len(cells.rows), np.int64)
    wide = cells.wide()
    narrow = ~wide[cells.segments.of]
    ns[narrow] = cells.filter(narrow).split()
    ends = np.append(cells.segments.starts[1:], len(ns))
    for segment in np.flatnonzero(wide).tolist():
        start, end = int(cells.segments.starts[segment]), int(ends[segment])
        ns[start:end] = cells.split_one(segment, SHARES.from_arrow(shares.slice(start, end - start)))
    return _fill_steps(steps, shares, cells, ns), arrow.fill(shares, gpu_ns=ns * cells.gpus[cells.segments.of])


def _fill_steps(steps: pa.Table, shares: pa.Table, cells: _Cells, ns: Ints) -> pa.Table:
    is_prefill = arrow.equals(shares, "phase", "prefill")
    duration = arrow.ints(steps, "duration_ns", SplitError)
    prefill = np.zeros(len(duration), np.int64)
    prefill[cells.steps] = cells.segments.sum(np.where(is_prefill, ns, 0))
    return arrow.fill(steps, prefill_ns=prefill, decode_ns=duration - prefill)


class _Cells(NamedTuple):
    """The cells of many steps as columns: int64[rows] per cell, int64[segments] per step with cells."""

    model: StepModel | None
    measured: bool
    segments: Segments
    seqs: Ints
    rows: Ints
    attn: Ints
    steps: Ints
    step_seq: Ints
    duration: Ints
    gpus: Ints

    @classmethod
    def read(cls, steps: pa.Table, shares: pa.Table, model: StepModel | None, measured: bool) -> _Cells:
        if model is None and not measured:
            raise SplitError("steps that were not measured need the step model that timed them")
        step_of, segments = match_cells(steps, shares)
        at = step_of[segments.starts]
        seqs, rows, attn = (arrow.counts(shares, name, SplitError) for name in ("seqs", "rows", "attn"))
        step_seq, duration, gpus = (
            arrow.counts(steps, name, SplitError) for name in ("step_seq", "duration_ns", "gpus")
        )
        if len(gpus) and int(duration.max()) * int(gpus.max()) >= 1 << 63:
            raise SplitError("a step's duration × GPUs does not fit 64 bits")
        return cls(model, measured, segments, seqs, rows, attn, at, step_seq[at], duration[at], gpus[at])

    def filter(self, keep: Bools) -> _Cells:
        """Only the rows in `keep`, which holds whole segments."""
        if keep.all():
            return self
        kept = np.unique(self.segments.of[keep])
        per_step = (column[kept] for column in (self.steps, self.step_seq, self.duration, self.gpus))
        per_row = (column[keep] for column in (self.seqs, self.rows, self.attn))
        segments = Segments.from_labels(self.segments.of[keep])
        return _Cells(self.model, self.measured, segments, *per_row, *per_step)

    def wide(self) -> Bools:
        """Segments whose sums might not fit the columns' integers."""
        counts = np.maximum(self.seqs, self.rows)
        wide = self.segments.any((counts >= NARROW_COUNT) | (self.attn >= NARROW))
        wide |= self.segments.sum(self.attn >> UNIT_BITS) >= NARROW >> UNIT_BITS
        if self.model is None:
            return wide
        if max(self.model.overhead, self.model.weights) >= NARROW:
            return np.ones_like(wide)
        per_row = self.model.row + self.model.row_comm
        return wide | (self.segments.sum(self.rows) > NARROW // max(per_row, 1))

    def split(self) -> Ints:
        """Nanoseconds of one GPU for each cell of narrow steps."""
        weights = self.weights()
        if self.measured:
            weights = self.key(weights, self.key(self.rows, self.seqs))
            total = self.segments.sum(weights)
            floors, rests = multiply_divide(self.duration[self.segments.of], weights, total[self.segments.of])
        else:
            floors, rests = weights >> UNIT_BITS, weights & (UNITS_PER_NS - 1)
        leftover = self.duration - self.segments.sum(floors)
        self.check_leftover(leftover)
        return self.segments.top_up(floors, rests, leftover)

    def weights(self) -> Ints:
        """`cell_weights` as a column."""
        by_rows = self.key(self.rows, self.seqs)
        if self.model is None:
            return by_rows
        rows = self.segments.sum(self.rows)
        linear = np.maximum(self.model.weights, self.model.row * rows) + self.model.row_comm * rows
        overhead = np.full_like(linear, self.model.overhead)
        by_seqs = self.key(self.seqs, self.rows)
        return self.floor_split(overhead, by_seqs) + self.floor_split(linear, by_rows) + self.attn

    def key(self, counts: Ints, others: Ints) -> Ints:
        """`counts`; in segments where they are all zero `others`; the first cell where those are too."""
        for fallback in (others, self.segments.first()):
            empty = self.segments.sum(counts) == 0
            counts = np.where(empty[self.segments.of], fallback, counts)
        return counts

    def floor_split(self, amount: Ints, counts: Ints) -> Ints:
        of = self.segments.of
        total = self.segments.sum(counts)
        floors, _ = multiply_divide(amount[of], self.segments.cumulate(counts), total[of])
        return self.segments.difference(floors)

    def check_leftover(self, leftover: Ints) -> None:
        wrong = (leftover < 0) | (leftover > self.segments.sum(np.ones_like(self.rows)))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise SplitError(
                f"step {self.step_seq[at]}: {self.duration[at]} ns is not the time that the step model gives"
            )

    def split_one(self, segment: int, cells: list[Share]) -> list[int]:
        """Nanoseconds of one GPU for the cells of one step."""
        try:
            return split_step(cells, self.model, int(self.duration[segment]), 1, self.measured)
        except SplitError as error:
            raise SplitError(f"step {self.step_seq[segment]}: {error}") from error


def match_cells(steps: pa.Table, shares: pa.Table) -> tuple[Ints, Segments]:
    """Find the step of every cell: its index in `steps` (int64[rows]), and the segments of equal steps.

    Raises SplitError where either table is out of order, a cell has no step, or a step that took time has no cell.
    """
    step_seq, cell_seq = arrow.ints(steps, "step_seq", SplitError), arrow.ints(shares, "step_seq", SplitError)
    falls = np.flatnonzero(step_seq[1:] <= step_seq[:-1])
    if len(falls):
        raise SplitError(f"steps are not in order: step {step_seq[falls[0] + 1]} follows {step_seq[falls[0]]}")
    _check_order(shares, cell_seq)
    step_of = np.searchsorted(step_seq, cell_seq)
    lost = np.ones(len(cell_seq), np.bool_)
    inside = step_of < len(step_seq)
    lost[inside] = step_seq[step_of[inside]] != cell_seq[inside]
    if lost.any():
        raise SplitError(f"cells of step {cell_seq[np.argmax(lost)]}, which is not among the steps")
    unpaid = arrow.ints(steps, "duration_ns", SplitError) > 0
    unpaid[step_of] = False
    if unpaid.any():
        raise SplitError(f"step {step_seq[np.argmax(unpaid)]} took time and has no cell to pay for it")
    return step_of, Segments.from_labels(cell_seq)


def _check_order(shares: pa.Table, cell_seq: Ints) -> None:
    """Neighbouring cells must rise in (step_seq, account, tenant_id, tier, phase)."""
    rises = cell_seq[1:] > cell_seq[:-1]
    equal = cell_seq[1:] == cell_seq[:-1]
    for name in CELL_ORDER:
        codes = arrow.ranks(shares, name)
        rises |= equal & (codes[1:] > codes[:-1])
        equal &= codes[1:] == codes[:-1]
    if not rises.all():
        at = int(np.argmin(rises)) + 1
        cell = tuple(shares.column(name)[at].as_py() for name in CELL_ORDER)
        raise SplitError(f"step {cell_seq[at]}: cell {cell} is not in the order of {', '.join(CELL_ORDER)}")
