"""Predicted times of a step's kernels on a replica."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from .kernels import ACTIVATION_BYTES, ELEMENT_BANDWIDTH, ELEMENT_US
from .model import weight_bytes
from .work import Work

if TYPE_CHECKING:
    from .replica import Replica


class KernelTimes(NamedTuple):
    """Seconds of a step by kind of kernel; numbers or arrays (float64[n])."""

    linear: Any
    attention: Any
    allreduce: Any
    head: Any
    elementwise: Any
    host: Any

    @property
    def total(self) -> Any:
        """The whole step."""
        return sum(self)


@dataclass(frozen=True, slots=True)
class StepParts:
    """Milliseconds of a step by what they are spent on."""

    weights_ms: float
    """Reading the weights."""
    compute_ms: float
    """What matrix products, elementwise kernels and prompts' attention take beyond that."""
    kv_ms: float
    """Reading the KV cache."""
    overhead_ms: float
    """Starting kernels, and the host."""
    allreduce_ms: float

    @property
    def total_ms(self) -> float:
        """The whole step."""
        return self.weights_ms + self.compute_ms + self.kv_ms + self.overhead_ms + self.allreduce_ms


def kernel_times(replica: Replica, work: Work) -> KernelTimes:
    """Times of the kernels of a step (or of many, when `work` holds arrays)."""
    model, tp, kernels = replica.model, replica.tp, replica.kernels
    peaks, plain = replica.peaks(replica.weights), replica.peaks("bf16")
    elements = model.layers * (
        ELEMENT_US * 1e-6 + work.rows * _element_bytes(replica) / ELEMENT_BANDWIDTH / plain.bandwidth
    )
    return KernelTimes(
        linear=kernels.rates(replica.weights).time(model.matrices(tp), work.rows, weight_bytes(replica.weights), peaks),
        attention=_attention_fixed(replica, work) + _decode_reads(replica, work) + _prompt_attention(replica, work),
        allreduce=reduces(replica) * kernels.reduce.time(work.rows * model.hidden * ACTIVATION_BYTES, tp),
        head=kernels.rates("bf16").time((model.head(tp),), work.sampled, ACTIVATION_BYTES, plain),
        elementwise=elements,
        host=kernels.step_us * 1e-6,
    )


def step_parts(replica: Replica, work: Work) -> StepParts:
    """One step by what its time is spent on; the parts sum to `kernel_times(…).total`."""
    model, tp, kernels = replica.model, replica.tp, replica.kernels
    times = kernel_times(replica, work)
    rates, plain = kernels.rates(replica.weights), kernels.rates("bf16")
    weights = sum(
        rates.stream(matrix, work.rows, weight_bytes(replica.weights), replica.peaks(replica.weights))
        for matrix in model.matrices(tp)
    )
    weights += plain.stream(model.head(tp), work.sampled, ACTIVATION_BYTES, replica.peaks("bf16"))
    kernel_starts = rates.launch(model.matrices(tp), work.rows) + plain.launch((model.head(tp),), work.sampled)
    kernel_starts += model.layers * ELEMENT_US * 1e-6 + _attention_fixed(replica, work)
    kv = _decode_reads(replica, work)
    compute = times.total - weights - kernel_starts - kv - times.allreduce - times.host
    return StepParts(
        weights_ms=weights * 1e3,
        compute_ms=compute * 1e3,
        kv_ms=kv * 1e3,
        overhead_ms=(kernel_starts + times.host) * 1e3,
        allreduce_ms=times.allreduce * 1e3,
    )


def reduces(replica: Replica) -> int:
    """All-reduces of a step: after attention and after the MLP of every layer."""
    return 2 * replica.model.layers if replica.tp > 1 else 0


def _element_bytes(replica: Replica) -> float:
    """Bytes that the elementwise kernels of a layer move per row: norms, rotary embedding, gate.

    As NVIDIA's aiconfigurator counts them: 12 per hidden unit, 4 per query and per key number, 6 per MLP unit.
    """
    model, tp = replica.model, replica.tp
    experts = model.experts
    wide = (
        model.intermediate if experts is None else experts.chosen * experts.intermediate + experts.shared_intermediate
    )
    return 12 * model.hidden + 4 * (model.heads + max(model.kv_heads, tp)) * model.head_dim / tp + 6 * wide / tp


def _attention_fixed(replica: Replica, work: Work) -> Any:
    """Starting the attention kernels of all layers: of decodes, of prompts, or of both."""
    decode, prefill = replica.kernels.decode, replica.kernels.prefill
    decoding = (work.decodes > 0) * decode.fixed(work.seen / _some(work.decodes))
    return replica.model.layers * (decoding + (work.prompt_rows > 0) * prefill.launch_us * 1e-6)


def _decode_reads(replica: Replica, work: Work) -> Any:
    """Decode attention: reading KV, or the arithmetic on it where that takes longer (latent attention)."""
    model, kernels, peaks = replica.model, replica.kernels, replica.peaks("bf16")
    token_bytes = model.kv_numbers(replica.tp) * replica.kv_number_bytes
    reads = model.cached_layers * kernels.decode.read(work.decodes, work.seen / _some(work.decodes), token_bytes, peaks)
    computes = work.seen * model.decode_flops_pair / replica.tp / (kernels.prefill.compute * peaks.attention_flops)
    longer = reads > computes
    return longer * reads + (1 - longer) * computes


def _prompt_attention(replica: Replica, work: Work) -> Any:
    model, tp = replica.model, replica.tp
    row_bytes = 2 * ACTIVATION_BYTES * (model.heads + max(model.kv_heads, tp)) * model.head_dim / tp
    pair_flops = model.flops_pair / model.cached_layers / tp
    layer = replica.kernels.prefill.time(
        work.prompt_rows, work.prompt_pairs, pair_flops, row_bytes, replica.peaks("bf16")
    )
    return model.cached_layers * layer


def _some(count: Any) -> Any:
    """At least one, so that no sequences have no mean context instead of dividing by zero."""
    return count + (count == 0)
