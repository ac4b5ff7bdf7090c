"""Model specs: the shape of a dense decoder-only transformer."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import SpecError
from .naming import find

WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5}
"""Bytes of one weight of the linear layers; embeddings and the head stay bf16."""
KV_BYTES = 2
"""Bytes of one cached number (bf16)."""


@dataclass(frozen=True, slots=True)
class Model:
    """Shape of a dense transformer with grouped-query attention and a gated MLP."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied_embeddings: bool = False

    @property
    def layer_params(self) -> int:
        """Parameters of all transformer layers."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.intermediate)

    @property
    def head_params(self) -> int:
        """Parameters of the output head."""
        return self.vocab * self.hidden

    @property
    def params(self) -> int:
        """All parameters, input embeddings included."""
        return self.layer_params + self.head_params * (1 if self.tied_embeddings else 2)

    @property
    def kv_bytes(self) -> int:
        """KV-cache bytes of one token over all layers."""
        return 2 * self.layers * self.kv_heads * self.head_dim * KV_BYTES

    @property
    def flops_pair(self) -> int:
        """Attention FLOPs of one (row, context token) pair: scores and values, 2 FLOPs each."""
        return 4 * self.layers * self.heads * self.head_dim

    def streamed_bytes(self, weights: str) -> int:
        """Bytes read once per step: the layers in their weight format, the head in bf16."""
        return int(self.layer_params * weight_bytes(weights)) + 2 * self.head_params

    def resident_bytes(self, weights: str) -> int:
        """Bytes that the weights occupy in memory, input embeddings included."""
        return self.streamed_bytes(weights) + (0 if self.tied_embeddings else 2 * self.head_params)


def weight_bytes(weights: str) -> float:
    """Bytes per weight of a format; `SpecError` for an unknown one."""
    if weights not in WEIGHT_BYTES:
        raise SpecError(f'unknown weight format "{weights}"; known: {", ".join(WEIGHT_BYTES)}')
    return WEIGHT_BYTES[weights]


# Shapes are those of the published config.json of each model.
_MODELS = (
    Model("llama-2-7b", 32, 4096, 32, 32, 128, 11008, 32000),
    Model("llama-2-13b", 40, 5120, 40, 40, 128, 13824, 32000),
    Model("llama-2-70b", 80, 8192, 64, 8, 128, 28672, 32000),
    Model("llama-3-8b", 32, 4096, 32, 8, 128, 14336, 128256),
    Model("llama-3-70b", 80, 8192, 64, 8, 128, 28672, 128256),
    Model("llama-3.1-405b", 126, 16384, 128, 8, 128, 53248, 128256),
    Model("llama-3.2-1b", 16, 2048, 32, 8, 64, 8192, 128256, tied_embeddings=True),
    Model("llama-3.2-3b", 28, 3072, 24, 8, 128, 8192, 128256, tied_embeddings=True),
    Model("mistral-7b", 32, 4096, 32, 8, 128, 14336, 32000),
    Model("qwen2.5-7b", 28, 3584, 28, 4, 128, 18944, 152064),
    Model("qwen2.5-72b", 80, 8192, 64, 8, 128, 29568, 152064),
    Model("qwen3-8b", 36, 4096, 32, 8, 128, 12288, 151936),
    Model("qwen3-32b", 64, 5120, 64, 8, 128, 25600, 151936),
)
_CATALOGUE = {model.name: model for model in _MODELS}
_ALIASES = {
    "llama-3-8b": (
        "llama-3.1-8b",
        "meta-llama-3-8b",
        "meta-llama-3.1-8b",
        "llama-3.1-8b-instruct",
        "llama-3-8b-instruct",
    ),
    "llama-3-70b": ("llama-3.1-70b", "llama-3.3-70b", "meta-llama-3-70b", "llama-3.3-70b-instruct"),
    "llama-2-7b": ("llama-2-7b-hf", "llama-2-7b-chat-hf"),
    "llama-2-70b": ("llama-2-70b-hf", "llama-2-70b-chat-hf"),
    "mistral-7b": ("mistral-7b-v0.1", "mistral-7b-instruct-v0.3"),
}


def model(name: str) -> Model:
    """The model called `name` in any usual spelling (`Llama-3-8B`, `meta-llama/Llama-3.1-8B`); else a `SpecError`."""
    return find("model", name, _CATALOGUE, _ALIASES)


def model_names() -> list[str]:
    """Canonical names of all known models."""
    return list(_CATALOGUE)
