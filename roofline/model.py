"""Model specs: the shape of a decoder-only transformer, dense or a mixture of experts."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import SpecError
from .matrix import Matrix

WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4": 0.5}
"""Bytes of one weight of the linear layers; embeddings and the head stay bf16."""
KV_BYTES = {"bf16": 2, "fp8": 1}
"""Bytes of one cached number."""


@dataclass(frozen=True, slots=True)
class Experts:
    """A mixture of experts in place of the MLP: `chosen` of `count` experts per row, beside what all rows share."""

    count: int
    chosen: int
    intermediate: int
    shared_intermediate: int = 0
    dense_layers: int = 0
    """The first layers that keep a plain MLP."""


@dataclass(frozen=True, slots=True)
class Latent:
    """Multi-head latent attention: one compressed vector and one rotary key per token stand for all heads' KV."""

    query: int
    """Rank of the compressed query; 0: the query is not compressed."""
    kv: int
    nope: int
    rope: int
    value: int


@dataclass(frozen=True, slots=True)
class Model:
    """Shape of a transformer with grouped-query or latent attention and gated MLPs."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied_embeddings: bool = False
    experts: Experts | None = None
    latent: Latent | None = None
    windowed_layers: int = 0
    """Layers that see so short a window that their cache does not count."""

    def matrices(self, tp: int = 1) -> tuple[Matrix, ...]:
        """The weight matrices of all layers as one of `tp` GPUs holds them; the head is not among them."""
        return (*self._attention(tp), *self._feed_forward(tp))

    def head(self, tp: int = 1) -> Matrix:
        """The output head as one of `tp` GPUs holds it."""
        return Matrix(-(-self.vocab // tp), self.hidden)

    def _attention(self, tp: int) -> tuple[Matrix, ...]:
        if self.latent is None:
            kv_heads = max(1, self.kv_heads // tp)
            projected = (self.heads // tp + 2 * kv_heads) * self.head_dim
            return (
                Matrix(projected, self.hidden, self.layers),
                Matrix(self.hidden, self.heads // tp * self.head_dim, self.layers),
            )
        rank, heads = self.latent, self.heads // tp
        query = heads * (rank.nope + rank.rope)
        queries = (
            (Matrix(rank.query, self.hidden, self.layers), Matrix(query, rank.query, self.layers))
            if rank.query
            else (Matrix(query, self.hidden, self.layers),)
        )
        return (
            *queries,
            Matrix(rank.kv + rank.rope, self.hidden, self.layers),
            Matrix(heads * (rank.nope + rank.value), rank.kv, self.layers),
            Matrix(self.hidden, heads * rank.value, self.layers),
        )

    def _feed_forward(self, tp: int) -> tuple[Matrix, ...]:
        experts = self.experts
        if experts is None:
            return _gated(self.hidden, self.intermediate, tp, self.layers)
        sparse = self.layers - experts.dense_layers
        parts = _gated(self.hidden, experts.intermediate, tp, sparse, experts.count, experts.chosen)
        if experts.dense_layers:
            parts += _gated(self.hidden, self.intermediate, tp, experts.dense_layers)
        if experts.shared_intermediate:
            parts += _gated(self.hidden, experts.shared_intermediate, tp, sparse)
        return (*parts, Matrix(experts.count, self.hidden, sparse))

    @property
    def layer_params(self) -> int:
        """Parameters of all transformer layers."""
        return sum(matrix.params for matrix in self.matrices())

    @property
    def active_params(self) -> int:
        """Parameters of the layers that one row is multiplied with; all of them in a dense model."""
        return sum(matrix.active for matrix in self.matrices())

    @property
    def head_params(self) -> int:
        """Parameters of the output head."""
        return self.vocab * self.hidden

    @property
    def params(self) -> int:
        """All parameters, input embeddings included."""
        return self.layer_params + self.head_params * (1 if self.tied_embeddings else 2)

    @property
    def cached_layers(self) -> int:
        """Layers whose cache grows with the context."""
        return self.layers - self.windowed_layers

    def kv_numbers(self, tp: int = 1) -> int:
        """Numbers that one of `tp` GPUs caches per token and layer; with more GPUs than KV heads each holds one."""
        if self.latent is not None:
            return self.latent.kv + self.latent.rope
        return 2 * max(1, self.kv_heads // tp) * self.head_dim

    @property
    def kv_bytes(self) -> int:
        """KV-cache bytes of one token over all layers, in bf16."""
        return self.cached_layers * self.kv_numbers() * KV_BYTES["bf16"]

    @property
    def flops_pair(self) -> int:
        """Attention FLOPs of one (row, context token) pair: scores and values, 2 FLOPs each."""
        width = 2 * self.head_dim if self.latent is None else self.latent.nope + self.latent.rope + self.latent.value
        return 2 * self.cached_layers * self.heads * width

    @property
    def decode_flops_pair(self) -> int:
        """The same while decoding; latent attention then multiplies with the compressed vectors themselves."""
        if self.latent is None:
            return self.flops_pair
        return 2 * self.cached_layers * self.heads * (2 * self.latent.kv + self.latent.rope)

    @property
    def head_params_kept(self) -> int:
        """Parameters of head and input embeddings that are kept in memory."""
        return self.head_params * (1 if self.tied_embeddings else 2)

    def streamed_bytes(self, weights: str) -> int:
        """Bytes of everything that a step may read once: the layers in their format, the head in bf16."""
        return int(self.layer_params * weight_bytes(weights)) + 2 * self.head_params

    def resident_bytes(self, weights: str) -> int:
        """Bytes that the weights occupy in memory, input embeddings included."""
        return int(self.layer_params * weight_bytes(weights)) + 2 * self.head_params_kept


def _gated(
    hidden: int, intermediate: int, tp: int, count: int, experts: int = 1, chosen: int = 1
) -> tuple[Matrix, ...]:
    """Gate and up in one matrix, and down."""
    width = -(-intermediate // tp)
    return (Matrix(2 * width, hidden, count, experts, chosen), Matrix(hidden, width, count, experts, chosen))


def weight_bytes(weights: str) -> float:
    """Bytes per weight of a format; `SpecError` for an unknown one."""
    if weights not in WEIGHT_BYTES:
        raise SpecError(f'unknown weight format "{weights}"; known: {", ".join(WEIGHT_BYTES)}')
    return WEIGHT_BYTES[weights]


def kv_bytes(kv: str) -> int:
    """Bytes per cached number of a format; `SpecError` for an unknown one."""
    if kv not in KV_BYTES:
        raise SpecError(f'unknown KV format "{kv}"; known: {", ".join(KV_BYTES)}')
    return KV_BYTES[kv]
