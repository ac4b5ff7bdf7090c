"""Intervals: what each cell pays of the time between two looks at an engine that tells no steps.

An interval stands for many steps of sizes that nobody knows. What it knows is how much of its time went into prompts
and how much into decoding; each part is split by the rows of that phase.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import arrow
from .cells import Cells
from .rule import SplitError
from .segments import Bools, Ints, Segments

_compute: Any = pc


def split_intervals(steps: pa.Table, cells: Cells, at: Ints, ns: Ints) -> Ints:
    """`ns` (int64[rows], of one GPU) with intervals split by phase, those whose `prefill_ns` is known.

    `at` is each segment's row in `steps`. Raises SplitError for an interval with time in a phase that has no cells.
    """
    known = _known(steps)[at]
    rows = np.flatnonzero(known[cells.segments.of])
    if not len(rows):
        return ns
    segment, is_prefill = cells.segments.of[rows], cells.is_prefill[rows]
    order = np.lexsort((np.arange(len(rows)), is_prefill, segment))
    label = (segment * 2 + is_prefill)[order]
    phases = Segments.from_labels(label)
    prefill: Any = _compute.fill_null(steps.column("prefill_ns"), 0)
    whole = np.where(known, prefill.to_numpy()[at], 0)
    of, prompts = label[phases.starts] // 2, label[phases.starts] % 2 == 1
    part = np.where(prompts, whole[of], cells.duration[of] - whole[of])
    if part.sum() != cells.duration[known].sum() or (part < 0).any():
        raise SplitError("an interval has time in a phase without cells to pay for it")
    chosen = rows[order]
    each = Cells(
        phases,
        cells.seqs[chosen],
        cells.rows[chosen],
        cells.attn[chosen],
        cells.is_prefill[chosen],
        cells.step_seq[of],
        part,
    )
    split = ns.copy()
    split[chosen] = each.split(each.rows)
    return split


def _known(steps: pa.Table) -> Bools:
    """Steps that are intervals whose parts are known (bool[steps])."""
    is_step = arrow.equals(steps, "basis", "step")
    return ~is_step & steps.column("prefill_ns").is_valid().to_numpy(zero_copy_only=False)
