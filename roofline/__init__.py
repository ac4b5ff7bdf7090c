"""GPU and model specs, and the step-time model built from them."""

from .errors import SpecError
from .gpu import Gpu, gpu, gpu_names
from .model import Model
from .models import model, model_names
from .replica import Replica
from .step_model import UNIT_BITS, UNITS_PER_NS, StepModel, pairs, to_units

__all__ = [
    "UNITS_PER_NS",
    "UNIT_BITS",
    "Gpu",
    "Model",
    "Replica",
    "SpecError",
    "StepModel",
    "gpu",
    "gpu_names",
    "model",
    "model_names",
    "pairs",
    "to_units",
]
