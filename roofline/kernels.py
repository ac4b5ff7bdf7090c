"""How long the kernels of a step take on one GPU, in forms that carry over to other shapes.

Every form is a fixed time plus traffic or arithmetic at a share of the datasheet's peak. `rows`, contexts and the like
may be numbers or arrays of them (float64[n]); all times are seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log2
from typing import Any, NamedTuple

from .matrix import Matrix

ACTIVATION_BYTES = 2
"""Bytes of one activation (bf16)."""
ACTIVATION_PASSES = 2
"""How often a matrix product moves its inputs and outputs, split accumulators included."""
BLEND_ROWS = 1024
"""Rows at which `MatrixRates.compute` holds."""
SHORT_CONTEXT = 128
"""Context up to which decode attention runs in its shortest time."""
CACHE_SHARPNESS = 4
"""How suddenly KV stops fitting into the L2 cache."""
ELEMENT_US = 6.0
"""Fixed time of a layer's elementwise kernels: two of 3 µs."""
ELEMENT_BANDWIDTH = 0.8
"""Share of the peak bandwidth that elementwise kernels reach."""


class Peaks(NamedTuple):
    """Datasheet peaks of one GPU: bytes/s, and FLOP/s of matrix products and of attention (bf16)."""

    bandwidth: float
    flops: float
    attention_flops: float


@dataclass(frozen=True, slots=True)
class MatrixRates:
    """Matrix products: µs to start one, shares of peak bandwidth and arithmetic, and how they go over into each other.

    `blend` is the exponent of the sum of both times: the higher, the sharper the ridge. `growth` is the exponent by
    which arithmetic gets faster with more rows (below 0: slower, as clocks sag). `single_us` is what starting takes
    longer for one row, and a quarter of it for two: kernels that are made for tiles of rows (fp8 on Blackwell) do.
    """

    launch_us: float
    bandwidth: float
    compute: float
    blend: float
    growth: float
    single_us: float = 0.0

    def launch(self, matrices: tuple[Matrix, ...], rows: Any = inf) -> Any:
        """Fixed time of multiplying `rows` rows with all of them."""
        each = self.launch_us + self.single_us / rows**2
        return sum(matrix.copies for matrix in matrices) * each * 1e-6

    def stream(self, matrix: Matrix, rows: Any, number_bytes: float, peaks: Peaks) -> Any:
        """Time to read the weights that `rows` rows need."""
        size = matrix.copies * matrix.out * matrix.inner * matrix.touched(rows) * number_bytes
        return size / (self.bandwidth * peaks.bandwidth)

    def time(self, matrices: tuple[Matrix, ...], rows: Any, number_bytes: float, peaks: Peaks) -> Any:
        """Time of multiplying `rows` rows with all of them, the fixed part included."""
        growth = (rows / BLEND_ROWS) ** self.growth
        total: Any = self.launch(matrices, rows)
        for matrix in matrices:
            moved = ACTIVATION_PASSES * ACTIVATION_BYTES * matrix.copies * matrix.chosen * rows
            moved = moved * (matrix.out + matrix.inner) / (self.bandwidth * peaks.bandwidth)
            reads = self.stream(matrix, rows, number_bytes, peaks) + moved
            computes = 2 * matrix.active * rows / (self.compute * growth * peaks.flops)
            total = total + (reads**self.blend + computes**self.blend) ** (1 / self.blend)
        return total


@dataclass(frozen=True, slots=True)
class DecodeRates:
    """Attention of decoding sequences over their cache, per layer.

    `launch_us`, and `doubling_us` for each doubling of the context; then KV at `bandwidth` of the peak, each sequence
    reading `setup_tokens` more than it has; `cache_speed` times the peak while the KV of a layer fits into `cache_mb`,
    as the L2 cache of a kernel timed alone holds it (in an engine the weights evict it: `StepModel` leaves it out).
    """

    launch_us: float
    doubling_us: float
    bandwidth: float
    setup_tokens: float
    cache_speed: float
    cache_mb: float

    def fixed(self, context: Any) -> Any:
        """Time of one layer that does not depend on how much is read; `context` is the mean of the sequences."""
        doublings = _log2(1 + context / SHORT_CONTEXT)
        return (self.launch_us + self.doubling_us * doublings) * 1e-6

    def read(self, seqs: Any, context: Any, token_bytes: float, peaks: Peaks) -> Any:
        """Time to read the KV of one layer, `token_bytes` per token."""
        size = seqs * (context + self.setup_tokens) * token_bytes
        cold = 1 / (1 + (self.cache_mb * 1e6 / (size + 1)) ** CACHE_SHARPNESS)
        return size * (cold / self.bandwidth + (1 - cold) / self.cache_speed) / peaks.bandwidth


@dataclass(frozen=True, slots=True)
class PrefillRates:
    """Attention of prompts, per layer.

    `launch_us`; arithmetic at `compute` of the bf16 peak, each row seeing `tile_tokens` more than causality asks, as
    kernels compute whole tiles; and queries, keys, values and outputs moved `traffic` times at peak bandwidth.
    """

    launch_us: float
    compute: float
    tile_tokens: float
    traffic: float

    def time(self, rows: Any, pairs: Any, pair_flops: float, row_bytes: float, peaks: Peaks) -> Any:
        """Time of one layer beyond the fixed part, for `rows` rows that see `pairs` (row, token) pairs."""
        computes = (pairs + rows * self.tile_tokens / 2) * pair_flops / (self.compute * peaks.attention_flops)
        return computes + self.traffic * rows * row_bytes / peaks.bandwidth


@dataclass(frozen=True, slots=True)
class ReduceRates:
    """One all-reduce over NVLink or PCIe: by the fastest of three ways up to `limit_mb`, by a ring above it.

    One-stage: every GPU reads all others' messages, `one_us` + (tp − 1)·bytes. Two-stage: 2·(tp − 1)/tp·bytes after
    `two_us`; both at `gbps` (GB/s per GPU). Ring: the same traffic after `ring_us`, at `ring_gbps`.
    """

    one_us: float
    two_us: float
    gbps: float
    ring_us: float
    ring_gbps: float
    limit_mb: float

    def time(self, size: Any, tp: int) -> Any:
        """Time of one all-reduce of messages of `size` bytes over `tp` GPUs."""
        if tp == 1:
            return size * 0.0
        traffic = 2 * (tp - 1) / tp * size
        one = self.one_us * 1e-6 + (tp - 1) * size / (self.gbps * 1e9)
        two = self.two_us * 1e-6 + traffic / (self.gbps * 1e9)
        ring = self.ring_us * 1e-6 + traffic / (self.ring_gbps * 1e9)
        return _either(size <= self.limit_mb * 1e6, _least(_least(one, two), ring), ring)


@dataclass(frozen=True, slots=True)
class Kernels:
    """All constants of one GPU type; `matrices` by weight format."""

    matrices: dict[str, MatrixRates]
    decode: DecodeRates
    prefill: PrefillRates
    reduce: ReduceRates
    step_us: float = 0.0
    """Host time of a step that the GPU waits for: 0 where only kernels were timed."""

    def rates(self, weights: str) -> MatrixRates:
        """The matrix products of a weight format: int8 runs like fp8; all without constants of their own like bf16."""
        like = {"int8": "fp8"}.get(weights, weights)
        return self.matrices.get(weights) or self.matrices.get(like) or self.matrices["bf16"]


def _log2(value: Any) -> Any:
    if isinstance(value, (int, float)):
        return log2(value)
    import numpy as np

    return np.log2(value)


def _least(one: Any, other: Any) -> Any:
    return _either(one < other, one, other)


def _either(which: Any, one: Any, other: Any) -> Any:
    if isinstance(which, bool):
        return one if which else other
    import numpy as np

    return np.where(which, one, other)  # pyright: ignore[reportUnknownVariableType] -- of arrays of any shape
