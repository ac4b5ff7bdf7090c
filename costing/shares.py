"""Shares: whole tables of steps split into what each cell pays.

Steps whose riders were held to a small batch first lose their emptiness (see `emptiness`); the rest goes by the integer
rule (see `rule`), or by another policy. Intervals of scraped engines have a rule of their own (see `intervals`).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ..roofline.step_model import StepModel
from . import arrow
from .cells import Cells
from .emptiness import add_underfill, empty_times, payers
from .intervals import split_intervals
from .policy_columns import split_cells
from .rule import SplitError
from .segments import Ints


def split_steps(
    steps: pa.Table, shares: pa.Table, model: StepModel | None, measured: bool, policy: str = "roofline"
) -> tuple[pa.Table, pa.Table]:
    """Both tables of one run with gpu_ns, prefill_ns and decode_ns filled in; shares may gain `underfill` cells.

    `steps` (STEPS schema) must rise in step_seq, `shares` (SHARES schema) in (step_seq, account, tenant_id, tier,
    phase). prefill_ns is the prefill cells' part of the duration, decode_ns the rest. Raises SplitError where tables
    are out of order or do not match, for a step that is not `measured` and yet does not take the model's time, and for
    one that has its `underfill` already; PolicyError for an unknown policy.
    """
    if model is None and not measured:
        raise SplitError("steps that were not measured need the step model that timed them")
    cells, at = Cells.read(steps, shares)
    empty = empty_times(steps, cells, at, model)
    riding = cells._replace(duration=cells.duration - empty)
    ns = split_cells(riding, model, policy, (empty == 0) & (not measured))
    if policy == "roofline":
        ns = split_intervals(steps, cells, at, ns)
    return fill(steps, shares, cells, at, ns, empty)


def fill(steps: pa.Table, shares: pa.Table, cells: Cells, at: Ints, ns: Ints, empty: Ints) -> tuple[pa.Table, pa.Table]:
    """Both tables with what riders pay (`ns`, int64[rows], of one GPU) and who pays for emptiness (int64[segments])."""
    segments = cells.segments
    is_payer = payers(steps, shares, cells, at)
    ns = ns + np.where(is_payer, empty[segments.of], 0)
    duration, gpus = (arrow.ints(steps, name, SplitError) for name in ("duration_ns", "gpus"))
    prefill = np.zeros(len(duration), np.int64)
    prefill[at] = segments.sum(np.where(cells.is_prefill, ns, 0))
    filled = arrow.fill(shares, gpu_ns=ns * gpus[at][segments.of])
    unpaid = (empty > 0) & ~segments.any(is_payer)
    filled = add_underfill(filled, steps, at[unpaid], (empty * gpus[at])[unpaid])
    return arrow.fill(steps, prefill_ns=prefill, decode_ns=duration - prefill), filled
