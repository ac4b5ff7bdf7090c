"""Another policy on a recorded run: its stored steps split and booked once more, in bounded memory.

They go through the same split and the same bookkeeper as when they were recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InputError
from ..events import LEDGER, REQUESTS, SHARES, STEPS, Run
from ..roofline.step_model import StepModel
from . import arrow
from .cells import Cells
from .emptiness import empty_times
from .ledger import Bookkeeper
from .policies import find_policy
from .policy_columns import split_cells
from .rollup import Totals
from .rule import SplitError
from .shares import fill, split_steps
from .stored_steps import stored_steps

_COUNTS = ("gpu_ns", "prompt_tokens", "cached_tokens", "output_tokens", "kv_block_ns")


def ledger_under(
    policy: str,
    run: Run,
    step_batches: Iterable[pa.RecordBatch],
    share_batches: Iterable[pa.RecordBatch],
) -> pa.Table:
    """The ledger of `run` (LEDGER schema, one line per key) as it would be under another policy, without its requests.

    Batches are those of `stored_steps`. Only what tenants pay among each other changes: idle, overhead,
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
    with stored_steps(run, step_batches, share_batches) as pairs:
        for some_steps, some_shares in pairs:
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
