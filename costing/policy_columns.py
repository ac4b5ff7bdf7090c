"""Policies over many steps at once: what `policies.split` and `rule.split_step` say of each, by columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..roofline.step_model import StepModel
from . import policies
from .cells import Cells
from .policies import OUTPUT_WEIGHT, PROMPT_WEIGHT
from .rule import SplitError, split_step
from .segments import Bools, Ints

MANY_PLAYERS = 512
"""Steps with more sequences get their Shapley value one by one: n · v would not fit the columns' integers."""


def split_cells(cells: Cells, model: StepModel | None, policy: str, modelled: Bools) -> Ints:
    """Nanoseconds of one GPU for each cell (int64[rows]); each step's sum to its duration.

    `modelled` (bool[segments]): steps whose duration is the step model's own time; only `roofline` asks. Raises
    PolicyError for an unknown policy, SplitError where `rule.split_step` or the policy would.
    """
    policies.find_policy(policy)
    modelled = modelled & (policy == "roofline")
    ns = np.zeros(len(cells.rows), np.int64)
    by_hand = cells.wide(model) | _needs_a_look(cells, model, policy)
    alone = modelled & ~by_hand & (cells.segments.sizes == 1) & (model is not None)
    if model is not None and alone.any():
        ns[cells.segments.starts[alone]] = cells.whole(alone, model)
    for steps in (modelled & ~by_hand & ~alone, ~modelled & ~by_hand):
        rows = steps[cells.segments.of]
        if rows.any():
            part = cells.filter(rows)
            weights = _WEIGHTS[policy](part, model)
            ns[rows] = part.split_modelled(weights) if modelled[steps][0] else part.split(weights)
    for segment in np.flatnonzero(by_hand).tolist():
        rows_of = slice(int(cells.segments.starts[segment]), cells.segments.end(segment))
        ns[rows_of] = _split_one(cells, segment, model, policy, bool(modelled[segment]))
    return ns


def _split_one(cells: Cells, segment: int, model: StepModel | None, policy: str, modelled: bool) -> list[int]:
    riders, duration = cells.shares(segment), int(cells.duration[segment])
    try:
        if modelled:
            return split_step(riders, model, duration, 1, measured=False)
        return policies.split(policy, riders, model, duration)
    except SplitError as error:
        raise SplitError(f"step {cells.step_seq[segment]}: {error}") from error


def _needs_a_look(cells: Cells, model: StepModel | None, policy: str) -> Bools:
    """Segments that columns cannot weigh under `shapley`: crowds, and unequal riders beyond the memory-bound range
    (bool[segments]).
    """
    if policy != "shapley" or model is None:
        return np.full(len(cells.duration), policy == "shapley")
    many = cells.segments.sum(cells.players) > MANY_PLAYERS
    unequal = cells.segments.any(cells.rows != cells.players)
    return many | (unequal & (cells.segments.sum(cells.rows) > model.memory_rows))


def _roofline(cells: Cells, model: StepModel | None) -> Ints:
    return cells.weights(model)


def _sequence(cells: Cells, model: StepModel | None) -> Ints:
    return cells.seqs


def _tokens(cells: Cells, model: StepModel | None) -> Ints:
    return cells.rows


def _weighted_tokens(cells: Cells, model: StepModel | None) -> Ints:
    return cells.rows * np.where(cells.is_prefill, PROMPT_WEIGHT, OUTPUT_WEIGHT)


def _shapley(cells: Cells, model: StepModel | None) -> Ints:
    """n times the value, n the step's players, where all bear the same part of what they share, and their own."""
    model = policies.shapley_model(model)
    players = cells.players
    of, rows = cells.segments.of, cells.segments.sum(cells.rows)
    everyone = np.maximum(cells.segments.sum(players), 1)[of]
    shared = model.step_column(rows) - model.row_comm * rows
    return players * shared[of] + everyone * (model.row_comm * cells.rows + cells.attn)


_WEIGHTS: Mapping[str, Callable[[Cells, StepModel | None], Ints]] = {
    "roofline": _roofline,
    "sequence": _sequence,
    "tokens": _tokens,
    "weighted_tokens": _weighted_tokens,
    "shapley": _shapley,
}
