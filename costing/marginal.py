"""Marginal time: how much shorter a step would have been without one tenant, all others riding on.

v(N) − v(N∖tenant), where all of a tenant's cells in the step leave together. It is a signal and no bill: weights that
all riders share would be streamed anyway, so what would go away with each of them adds up to less than the step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import InputError
from ..events import LEDGER, REQUESTS, Run
from ..roofline.step_model import StepModel
from . import arrow
from .cells import Cells
from .ledger import Bookkeeper
from .policies import players_of
from .rollup import LINE_KEYS, roll_up
from .rule import SplitError
from .segments import Bools, Ints, Segments, multiply_divide
from .stored_steps import stored_steps

MARGINAL_SUMS = ("gpu_ns", "marginal_gpu_ns")
_LINE = (LEDGER.time, *LINE_KEYS)


def marginal_of(rest: tuple[int, int, int], whole: tuple[int, int], model: StepModel, duration_ns: int) -> int:
    """What would go away of a step of `duration_ns` (ns of one GPU): T·(v(N) − v(rest))/v(N), rounded down.

    `whole` are all rows and Σ a_i of the step, `rest` the players, rows and Σ a_i that stay; without players no step
    would have been, and all of it goes.
    """
    players, rows, attention = rest
    if not players:
        return duration_ns
    time = model.step(*whole)
    return duration_ns * (time - model.step(rows, attention)) // time if time else 0


def step_marginals(steps: pa.Table, shares: pa.Table, model: StepModel) -> Ints:
    """GPU-nanoseconds that would go away with each tenant (int64[rows of shares]), told at its first cell in a step.

    Tenants leave with their `tenant` cells; rows that are nobody's doing stay. Raises SplitError where steps and shares
    do not match.
    """
    cells, at = Cells.read(steps, shares)
    is_tenant = arrow.equals(shares, "account", "tenant")
    leavers = _leavers(cells, np.where(is_tenant, arrow.ranks(shares, "tenant_id") + 1, 0))
    step = cells.segments.of[leavers.starts]
    columns = (cells.players, cells.rows, cells.attn)
    stay = [cells.segments.sum(column)[step] - leavers.sum(column) for column in columns]
    is_wide = cells.wide(model)
    ns = np.zeros_like(step) if is_wide.all() else _narrow(stay, cells, step, is_wide, model)
    for leaver in np.flatnonzero(is_wide[step] & is_tenant[leavers.starts]).tolist():
        ns[leaver] = _wide(cells, leavers, leaver, model)
    gpus = arrow.ints(steps, "gpus", SplitError)[at]
    found = np.zeros(len(is_tenant), np.int64)
    found[leavers.starts] = np.where(is_tenant[leavers.starts], ns * gpus[step], 0)
    return found


def _leavers(cells: Cells, tenant: Ints) -> Segments:
    """Neighbouring cells of one tenant in one step; `tenant` (int64[rows]) is 0 for what is no tenant's."""
    return Segments.from_labels(cells.segments.of * (int(tenant.max(initial=0)) + 1) + tenant)


def _narrow(stay: list[Ints], cells: Cells, step: Ints, is_wide: Bools, model: StepModel) -> Ints:
    """`marginal_of` as a column (int64[leavers]); what is wide counts as nothing."""
    players, rows, attention = (np.where(is_wide[step], 0, column) for column in stay)
    all_rows, all_attention = (np.where(is_wide, 0, cells.segments.sum(each)) for each in (cells.rows, cells.attn))
    whole = model.step_column(all_rows, all_attention)
    gone = whole[step] - model.step_column(rows, attention)
    ns, _ = multiply_divide(cells.duration[step], gone, np.maximum(whole, 1)[step])
    return np.where(players == 0, cells.duration[step], ns)


def _wide(cells: Cells, leavers: Segments, leaver: int, model: StepModel) -> int:
    """`marginal_of` for a step whose numbers do not fit the columns' integers."""
    step = int(cells.segments.of[leavers.starts[leaver]])
    riders = cells.shares(step)
    first = int(leavers.starts[leaver] - cells.segments.starts[step])
    stay = riders[:first] + riders[first + int(leavers.sizes[leaver]) :]
    left, whole = ((sum(each.rows for each in some), sum(each.attn for each in some)) for some in (stay, riders))
    return marginal_of((sum(players_of(stay)), *left), whole, model, int(cells.duration[step]))


def marginal_lines(
    run: Run, step_batches: Iterable[pa.RecordBatch], share_batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """A run's tenant lines by the minute, from steps in bounded memory: keys of LEDGER, `gpu_ns` and `marginal_gpu_ns`.

    `gpu_ns` is what the bill has of the same steps. Batches are those of `stored_steps`. Raises InputError for a run
    without a step model, SplitError and LedgerError where steps and shares do not match.
    """
    if not run.step_model:
        raise InputError(f"run {run.run_id} has no step model, which marginal time needs")
    model, keeper, nothing = StepModel.from_json(run.step_model), Bookkeeper(run), REQUESTS.to_arrow([])
    with stored_steps(run, step_batches, share_batches) as pairs:
        for steps, shares in pairs:
            # KV time is cut at minute borders as GPU time is, so marginal time takes its place in the books.
            told = arrow.fill(shares, kv_block_ns=step_marginals(steps, shares, model))
            lines = keeper.book(steps, told, nothing, keeper.covered_ns)
            tenants = arrow.where(lines, arrow.equals(lines, "account", "tenant"))
            named: Any = tenants.select([*_LINE, "gpu_ns", "kv_block_ns"])
            yield from named.rename_columns([*_LINE, *MARGINAL_SUMS]).to_batches()


def roll_marginals(batches: Iterable[pa.RecordBatch], borders: Iterable[int], first_ns: int, end_ns: int) -> pa.Table:
    """Add up `marginal_lines` of [first, end) between borders, each sum dated by the border before it (UTC ns)."""
    edges = sorted({first_ns, end_ns, *(at for at in borders if first_ns < at < end_ns)})
    return roll_up(batches, LINE_KEYS, MARGINAL_SUMS, LEDGER.time, edges)
