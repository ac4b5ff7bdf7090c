"""How many rode together, judged from the bill: a token's GPU time against that of a step that reads the weights."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from ..events import Run
from ..roofline.step_model import UNITS_PER_NS, StepModel
from .effects import Traffic


def seat_costs(runs: Iterable[Run]) -> dict[str, int]:
    """For each model the GPU-nanoseconds of a decode step that everybody in it shares: overhead and weights.

    Models whose runs have no step model or different ones are left out, and so are mixtures of experts: their steps
    read as many weights as their riders ask for.
    """
    found: dict[str, set[int | None]] = {}
    for run in runs:
        found.setdefault(run.model, set()).add(_shared_ns(run))
    return {model: cost for model, costs in found.items() if len(costs) == 1 for cost in costs if cost}


def riders(traffic: Traffic, seat_cost: int | None) -> Fraction | None:
    """As if how many sequences had decoded together; null without decoded tokens or a known `seat_cost`.

    A request's first token comes out of its prompt's step and is not counted. At least 1.
    """
    decoded = traffic.output_tokens - traffic.requests
    if not seat_cost or decoded <= 0 or not traffic.decode_ns:
        return None
    return max(Fraction(seat_cost * decoded, traffic.decode_ns), Fraction(1))


def _shared_ns(run: Run) -> int | None:
    model = None if run.step_model is None else StepModel.from_json(run.step_model)
    if model is None or model.streams:
        return None
    return (model.overhead + model.weights) * run.gpus // UNITS_PER_NS
