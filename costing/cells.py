"""Cells: the riders of many steps as columns, and the integer rule over them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..events import Share
from ..roofline.step_model import UNIT_BITS, UNITS_PER_NS, StepModel
from . import arrow
from .rule import SplitError
from .segments import Bools, Ints, Segments, multiply_divide

NARROW_BITS = 50
"""Steps whose times stay below 2⁵⁰ units (18 minutes of 2⁻²⁰ ns) are split by columns, others one by one."""
NARROW = 1 << NARROW_BITS
NARROW_COUNT = 1 << 30
CELL_ORDER = ("account", "tenant_id", "tier", "phase")


class Cells(NamedTuple):
    """The cells of many steps: int64[rows] per cell, int64[segments] per step that has cells."""

    segments: Segments
    seqs: Ints
    rows: Ints
    attn: Ints
    is_prefill: Bools
    step_seq: Ints
    duration: Ints
    """Nanoseconds that each step's cells share, of one GPU."""

    @classmethod
    def read(cls, steps: pa.Table, shares: pa.Table) -> tuple[Cells, Ints]:
        """The cells of two tables, and each segment's row in `steps` (int64[segments]); raises as `match_cells`."""
        step_of, segments = match_cells(steps, shares)
        at = step_of[segments.starts]
        seqs, rows, attn = (arrow.counts(shares, name, SplitError) for name in ("seqs", "rows", "attn"))
        step_seq, duration, gpus = (
            arrow.counts(steps, name, SplitError) for name in ("step_seq", "duration_ns", "gpus")
        )
        if len(gpus) and int(duration.max()) * int(gpus.max()) >= 1 << 63:
            raise SplitError("a step's duration × GPUs does not fit 64 bits")
        is_prefill = arrow.equals(shares, "phase", "prefill")
        return cls(segments, seqs, rows, attn, is_prefill, step_seq[at], duration[at]), at

    def filter(self, keep: Bools) -> Cells:
        """Only the cells in `keep` (bool[rows]), and the steps that have one of them."""
        if keep.all():
            return self
        rows = np.flatnonzero(keep)
        labels = self.segments.of[rows]
        segments = Segments.from_labels(labels)
        kept = labels[segments.starts]
        return Cells(
            segments,
            self.seqs[rows],
            self.rows[rows],
            self.attn[rows],
            self.is_prefill[rows],
            self.step_seq[kept],
            self.duration[kept],
        )

    def shares(self, segment: int) -> list[Share]:
        """The cells of one step as records, with only what a split looks at filled in."""
        start = int(self.segments.starts[segment])
        columns = (self.seqs, self.rows, self.attn, self.is_prefill)
        values = zip(*(column[start : self.segments.end(segment)].tolist() for column in columns), strict=True)
        seq = int(self.step_seq[segment])
        return [
            Share("", "", seq, 0, "", "", "", "prefill" if prefill else "decode", seqs, rows, 0, 0, attn, 0, None)
            for seqs, rows, attn, prefill in values
        ]

    def wide(self, model: StepModel | None) -> Bools:
        """Segments whose sums might not fit the columns' integers (bool[segments])."""
        if self._are_narrow(model):
            return np.zeros(len(self.duration), np.bool_)
        counts = np.maximum(self.seqs, self.rows)
        wide = self.segments.any((counts >= NARROW_COUNT) | (self.attn >= NARROW))
        wide |= self.segments.sum(self.attn >> UNIT_BITS) >= NARROW >> UNIT_BITS
        if model is None:
            return wide
        if max(model.overhead, model.most_shared) >= NARROW:
            return np.ones_like(wide)
        return wide | (self.segments.sum(self.rows) > NARROW // max(model.most_per_row, 1))

    def _are_narrow(self, model: StepModel | None) -> bool:
        """Whether the largest values alone show that all sums fit."""
        if not len(self.rows):
            return True
        rows, most = int(self.rows.max()), int(self.segments.sizes.max())
        if max(rows, int(self.seqs.max())) >= NARROW_COUNT or most * int(self.attn.max()) >= NARROW:
            return False
        if model is None:
            return True
        shared = max(model.overhead, model.most_shared)
        return shared < NARROW and most * rows <= NARROW // max(model.most_per_row, 1)

    @property
    def players(self) -> Ints:
        """How many may leave each cell one by one (int64[rows]): its sequences, or one if it has rows without any."""
        return np.maximum(self.seqs, np.minimum(self.rows, 1))

    def whole(self, alone: Bools, model: StepModel) -> Ints:
        """The durations of `alone` (bool[segments]), steps with a single cell; SplitError if they are not modelled."""
        at = np.flatnonzero(alone)
        row = self.segments.starts[at]
        duration = self.duration[at]
        leftover = duration - (model.step_column(self.rows[row], self.attn[row]) >> UNIT_BITS)
        _check_leftover(leftover, 1, self.step_seq[at], duration)
        return duration

    def split(self, weights: Ints) -> Ints:
        """Each step's duration by `weights` (int64[rows], sums below 2⁶¹), by rows where they are all zero."""
        weights = self.key(weights, self.key(self.rows, self.seqs))
        total = self.segments.sum(weights)
        floors, rests = multiply_divide(self.duration[self.segments.of], weights, total[self.segments.of])
        return self.segments.top_up(floors, rests, self.duration - self.segments.sum(floors))

    def split_modelled(self, weights: Ints) -> Ints:
        """Each step's duration, the model's own time, by weights in 2⁻²⁰ ns; raises SplitError if it is not that."""
        floors, rests = weights >> UNIT_BITS, weights & (UNITS_PER_NS - 1)
        leftover = self.duration - self.segments.sum(floors)
        _check_leftover(leftover, self.segments.sizes, self.step_seq, self.duration)
        return self.segments.top_up(floors, rests, leftover)

    def weights(self, model: StepModel | None) -> Ints:
        """`rule.cell_weights` as a column."""
        by_rows = self.key(self.rows, self.seqs)
        if model is None:
            return by_rows
        rows = self.segments.sum(self.rows)
        linear = model.linear_column(rows)
        overhead = np.full_like(linear, model.overhead)
        by_seqs = self.key(self.seqs, self.rows)
        return self._floor_split(overhead, by_seqs) + self._floor_split(linear, by_rows) + self.attn

    def key(self, counts: Ints, others: Ints) -> Ints:
        """`counts`; in segments where they are all zero `others`; the first cell where those are too."""
        for fallback in (others, self.segments.first()):
            empty = self.segments.sum(counts) == 0
            counts = np.where(empty[self.segments.of], fallback, counts)
        return counts

    def _floor_split(self, amount: Ints, counts: Ints) -> Ints:
        of = self.segments.of
        total = self.segments.sum(counts)
        floors, _ = multiply_divide(amount[of], self.segments.cumulate(counts), total[of])
        return self.segments.difference(floors)


def _check_leftover(leftover: Ints, most: Ints | int, step_seq: Ints, duration: Ints) -> None:
    """Rounding leaves less than a nanosecond per cell; what leaves more is not the model's time."""
    wrong = (leftover < 0) | (leftover > most)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise SplitError(f"step {step_seq[at]}: {duration[at]} ns is not the time that the step model gives")


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
