"""GPU and model specs, and the step-time model built from them."""

from .step_model import UNIT_BITS, UNITS_PER_NS, StepModel, pairs, to_units

__all__ = ["UNITS_PER_NS", "UNIT_BITS", "StepModel", "pairs", "to_units"]
