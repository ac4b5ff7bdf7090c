"""Scales: how the steps of a real engine compare with what its kernels alone would take."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .step_model import StepModel, to_units


@dataclass(frozen=True, slots=True)
class Scales:
    """Factors of a step model's constants, and what a step with prompts takes on top (µs per layer).

    `weights` goes for all that is memory's time, `row` for all that grows with the rows.
    """

    overhead: float = 1.0
    weights: float = 1.0
    row: float = 1.0
    row_comm: float = 1.0
    kv: float = 1.0
    attention: float = 1.0
    prompt_us: float = 0.0

    def apply(self, model: StepModel, layers: int) -> StepModel:
        """The step model of a replica whose kernels take `model`."""
        return replace(
            model,
            overhead=round(model.overhead * self.overhead),
            weights=round(model.weights * self.weights),
            row=round(model.row * self.row),
            row_comm=round(model.row_comm * self.row_comm),
            kv_token=round(model.kv_token * self.kv),
            attn_pair=round(model.attn_pair * self.attention),
            prompt=to_units(layers * self.prompt_us * 1e-6),
            streams=tuple((round(base * self.weights), round(slope * self.weights)) for base, slope in model.streams),
            ridge=tuple((round(base * self.weights), round(slope * self.row)) for base, slope in model.ridge),
        )
