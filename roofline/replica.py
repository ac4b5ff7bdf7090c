"""A replica: one model on its GPUs, what fits into their memory, and how long its steps take."""

from __future__ import annotations

from dataclasses import dataclass

from . import condense
from .constants import Constants, shipped_constants
from .errors import SpecError
from .gpu import Gpu
from .kernels import Kernels, Peaks
from .model import WEIGHT_BYTES, Model, kv_bytes, weight_bytes
from .step_model import StepModel

MEMORY_UTILISATION = 0.9
"""Part of the memory that an engine takes for weights and KV cache, as vLLM's `gpu_memory_utilization`."""
ACTIVATION_BYTES_PER_ROW = 8
"""Peak activation bytes per row and hidden unit that an engine keeps free beside weights and KV."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy of a model over `tp` GPUs that work in lock step."""

    gpu: Gpu
    model: Model
    weights: str = "bf16"
    tp: int = 1
    kv: str = "bf16"
    """Format of the KV cache."""
    constants: Constants | None = None
    """Constants of the GPU's kernels; None: the shipped ones."""

    def __post_init__(self) -> None:
        """Refuse what cannot be split or is no number of GPUs."""
        weight_bytes(self.weights)
        kv_bytes(self.kv)
        if self.tp < 1:
            raise SpecError(f"--tp {self.tp}: a replica needs at least one GPU")
        if self.model.heads % self.tp:
            raise SpecError(f"--tp {self.tp}: the {self.model.heads} heads of {self.model.name} do not split evenly")

    @property
    def kv_token_bytes(self) -> int:
        """KV bytes of one token over all GPUs; what does not split over them is held several times."""
        return self.tp * self.model.cached_layers * self.model.kv_numbers(self.tp) * self.kv_number_bytes

    def block_bytes(self, block_size: int) -> int:
        """Bytes of one KV block over all GPUs."""
        return self.kv_token_bytes * block_size

    def kv_blocks(self, block_size: int = 16, max_num_batched_tokens: int = 8192) -> int:
        """KV blocks that fit beside weights and activations; `SpecError` if the model itself does not fit."""
        activations = max_num_batched_tokens * self.model.hidden * ACTIVATION_BYTES_PER_ROW
        resident = self.model.resident_bytes(self.weights)
        blocks = (self._usable - resident - activations) // self.block_bytes(block_size)
        if blocks < 2:
            if activations > self._usable - resident > 0:
                raise SpecError(
                    f"{max_num_batched_tokens} rows in a step take {_gb(activations)} beside the weights of "
                    f"{self.model.name}, and {self.tp}×{self.gpu.label} have {_gb(self._usable - resident)} left for "
                    "them and the KV cache; compute fewer rows at a time (--max-num-batched-tokens)"
                )
            raise SpecError(
                f"{self.model.name} does not fit: its {self.weights} weights take {_gb(resident)}, and "
                f"{self.tp}×{self.gpu.label} offer {_gb(self._usable)} for weights and KV cache; {self._way_out()}"
            )
        return blocks

    @property
    def _usable(self) -> int:
        return int(self.gpu.memory * MEMORY_UTILISATION) * self.tp

    def _way_out(self) -> str:
        resident = self.model.resident_bytes(self.weights)
        tp = next((n for n in (2, 4, 8, 16) if n > self.tp and self._usable // self.tp * n > 1.1 * resident), None)
        wider = f"use --tp {tp}" if tp else "use more GPUs"
        smaller = [name for name, size in WEIGHT_BYTES.items() if size < WEIGHT_BYTES[self.weights] and name != "int8"]
        if not smaller:
            return f"{wider} or a larger GPU"
        return f"{wider}, smaller weights (--weights {' or '.join(smaller)}) or a larger GPU"

    @property
    def kernels(self) -> Kernels:
        """The constants of this GPU's kernels: those given, else the shipped ones."""
        return self.origin_constants.kernels

    @property
    def origin_constants(self) -> Constants:
        """The constants with their origin."""
        return self.constants or shipped_constants(self.gpu.name)

    def peaks(self, weights: str) -> Peaks:
        """Datasheet peaks of one GPU for matrix products with these weights."""
        return Peaks(self.gpu.bandwidth, self.gpu.peak_flops(weights), self.gpu.bf16_flops)

    @property
    def kv_number_bytes(self) -> int:
        """Bytes of one cached number."""
        return kv_bytes(self.kv)

    def step_model(self) -> StepModel:
        """Integer constants of the step time, from the kernels of this GPU and what engines took compared with them."""
        return self.origin_constants.scales.apply(condense.step_model(self), self.model.layers)


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
