"""A replica: one model on its GPUs, what fits into their memory, and how long its steps take."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import SpecError
from .gpu import Gpu
from .model import WEIGHT_BYTES, Model, weight_bytes
from .step_model import StepModel

MEMORY_UTILISATION = 0.9
"""Part of the memory that an engine takes for weights and KV cache, as vLLM's `gpu_memory_utilization`."""
ACTIVATION_BYTES = 2
"""Bytes of one activation (bf16), as all-reduces move them."""
ACTIVATION_BYTES_PER_ROW = 8
"""Peak activation bytes per row and hidden unit that an engine keeps free beside weights and KV."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One copy of a model over `tp` GPUs that work in lock step."""

    gpu: Gpu
    model: Model
    weights: str = "bf16"
    tp: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be split or is no number of GPUs."""
        weight_bytes(self.weights)
        if self.tp < 1:
            raise SpecError(f"--tp {self.tp}: a replica needs at least one GPU")
        if self.model.heads % self.tp:
            raise SpecError(f"--tp {self.tp}: the {self.model.heads} heads of {self.model.name} do not split evenly")

    @property
    def kv_token_bytes(self) -> int:
        """KV bytes of one token over all GPUs; with more GPUs than KV heads each head is held several times."""
        copies = max(1, self.tp // self.model.kv_heads)
        return self.model.kv_bytes * copies

    def block_bytes(self, block_size: int) -> int:
        """Bytes of one KV block over all GPUs."""
        return self.kv_token_bytes * block_size

    def kv_blocks(self, block_size: int = 16, max_num_batched_tokens: int = 8192) -> int:
        """KV blocks that fit beside weights and activations; `SpecError` if the model itself does not fit."""
        activations = max_num_batched_tokens * self.model.hidden * ACTIVATION_BYTES_PER_ROW
        resident = self.model.resident_bytes(self.weights)
        blocks = (self._usable - resident - activations) // self.block_bytes(block_size)
        if blocks < 2:
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

    def step_model(self) -> StepModel:
        """Integer constants of the step time, from datasheet peaks times fitted efficiencies.

        A ring all-reduce moves 2·(tp−1)/tp of a message per GPU, twice a layer. `gpus.toml` names the origin of every
        constant.
        """
        gpu, model, tp = self.gpu, self.model, self.tp
        fit = gpu.efficiency_for(self.weights)
        bandwidth = gpu.bandwidth * tp
        reduces = 2 * model.layers if tp > 1 else 0
        traffic = 2 * (tp - 1) / tp * model.hidden * ACTIVATION_BYTES
        return StepModel.of(
            weight_bytes=model.streamed_bytes(self.weights),
            kv_token_bytes=self.kv_token_bytes,
            flops_row=2 * model.layer_params,
            flops_pair=model.flops_pair,
            bandwidth=bandwidth * fit.bandwidth,
            kv_bandwidth=bandwidth * fit.kv_bandwidth,
            flops=gpu.peak_flops(self.weights) * tp * fit.compute,
            attention_flops=gpu.bf16_flops * tp * fit.attention,
            overhead_s=(model.layers * fit.layer_us + reduces * fit.allreduce_us) * 1e-6,
            row_comm_s=reduces * traffic / (fit.allreduce_gbps * 1e9),
        )


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
