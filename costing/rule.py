"""The integer rule: who pays for which nanosecond of a step, in plain integers.

A cell's weight X is its part of the step's overhead (by sequences), of the linear layers (by rows), and its own
attention. `shares.split_steps` is the same rule over whole tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from ..errors import FareboxError
from ..events import Share
from ..roofline.step_model import UNITS_PER_NS, StepModel
from .apportion import apportion, top_up


class SplitError(FareboxError, ValueError):
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
