"""What a fit may change: one factor per constant of the step model, with what is known of each before any run."""

from __future__ import annotations

from dataclasses import astuple

import numpy as np
from numpy.typing import NDArray

from ..roofline import Replica, condense, to_units
from ..roofline.scales import Scales
from ..roofline.step_model import StepModel

NAMES = ("overhead", "weights", "row", "row_comm", "kv", "attention", "prompt_us")
SPREAD = np.array([0.7, 0.12, 0.3, 0.8, 0.15, 0.5, 1.5])
"""Standard deviations of the factors' logarithms before any run: streaming is well known, host time is not."""
PROMPT_US = 100.0
"""Typical time per layer that a step with prompts takes on top."""
MOST_OF_PEAK = 0.97
"""No kernel gets more than this of a datasheet peak."""

Vector = NDArray[np.float64]


class Unknowns:
    """The logarithms of `Scales` (float64[7], in the order of `NAMES`) of one replica, and what bounds them."""

    def __init__(self, replica: Replica) -> None:
        self.base = condense.step_model(replica)
        self.layers = replica.model.layers
        self.typical: Vector = np.log(np.array([1, 1, 1, 1, 1, 1, PROMPT_US]))
        self.least: Vector = self.typical + np.minimum(_least(self.base, replica), 0.0)

    def scales(self, logs: Vector) -> Scales:
        """The factors that a point stands for."""
        return Scales(*map(float, np.exp(logs)))

    def model(self, logs: Vector) -> StepModel:
        """The step model at a point."""
        return self.scales(logs).apply(self.base, self.layers)

    def point(self, scales: Scales) -> Vector:
        """The point that stands for some factors."""
        return np.log(np.array(astuple(scales)))


def _least(base: StepModel, replica: Replica) -> Vector:
    """How far the factors may go below typical: to the time that the datasheet's peaks would take."""
    gpu, tp = replica.gpu, replica.tp
    bandwidth = gpu.bandwidth * tp * MOST_OF_PEAK
    flops = gpu.peak_flops(replica.weights) * tp * MOST_OF_PEAK
    pair_flops = gpu.bf16_flops * tp * MOST_OF_PEAK
    peak = {
        1: (to_units(base.weight_bytes / bandwidth), base.weights),
        2: (to_units(base.flops_row / flops), base.row),
        4: (to_units(base.kv_token_bytes / bandwidth), base.kv_token),
        5: (to_units(base.flops_pair / pair_flops), base.attn_pair),
    }
    least = np.full(len(NAMES), -np.inf)
    for number, (units, typical) in peak.items():
        least[number] = np.log(units / typical)
    return least
