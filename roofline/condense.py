"""From kernels to the constants of the step model: what an engine can add up in integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .model import weight_bytes
from .prediction import kernel_times, step_parts
from .step_model import ALL_TOUCHED, StepModel, stream_lines, to_units
from .work import Work

if TYPE_CHECKING:
    from .replica import Replica

TYPICAL_CONTEXT = 1024
"""Context at which the fixed time of decode attention is taken, in tokens."""
SETUP_CONTEXT = 2 * TYPICAL_CONTEXT
"""Context over which what a sequence reads beyond its own tokens is spread."""
FEW_ROWS = 2
"""Rows at which starting kernels is taken: between one, for which it may take longer, and many."""
SEVERAL_ROWS = 512
"""Rows over which r is taken."""
MANY_ROWS = 4096
"""Rows at which c makes the step as long as its kernels: a usual chunk, well in the compute-bound range."""
RIDGE = (0.5, 1.0, 2.0)
"""Where the ridge gets its tangents, as parts of the rows at which reading and arithmetic take as long."""
NEAR = 1.02
"""Distance over which a tangent's slope is taken."""


def step_model(replica: Replica) -> StepModel:
    """Integer constants of the step time of a replica; KV is read cold, all sequences have `TYPICAL_CONTEXT`."""
    model, tp, kernels, peaks = replica.model, replica.tp, replica.kernels, replica.peaks("bf16")
    attention_flops = kernels.prefill.compute * peaks.attention_flops * tp
    attn_pair = model.flops_pair / attention_flops
    one, few = (step_parts(replica, Work.decode(seqs, TYPICAL_CONTEXT)) for seqs in (1, FEW_ROWS))
    overhead = (few.overhead_ms + one.allreduce_ms) / 1e3
    row_comm = (_talk_s(replica, SEVERAL_ROWS) - _talk_s(replica, 1)) / (SEVERAL_ROWS - 1)
    prompt = Work.prefill(1, MANY_ROWS)
    row = (kernel_times(replica, prompt).total - overhead - attn_pair * prompt.prompt_pairs) / MANY_ROWS - row_comm
    points = _stream_points(replica)
    return StepModel(
        overhead=to_units(overhead),
        weights=points[-1][1],
        row=to_units(row),
        row_comm=to_units(row_comm),
        kv_token=to_units(max(_kv_token_s(replica), model.decode_flops_pair / attention_flops)),
        attn_pair=to_units(attn_pair),
        weight_bytes=model.streamed_bytes(replica.weights),
        kv_token_bytes=replica.kv_token_bytes,
        flops_row=2 * model.active_params,
        flops_pair=model.flops_pair,
        streams=stream_lines(points) if model.experts else (),
        ridge=() if model.experts else _ridge(lambda rows: _matrices_s(replica, rows), points[-1][1], to_units(row)),
    )


def _kv_token_s(replica: Replica) -> float:
    """Reading the KV of one token from memory."""
    model, decode = replica.model, replica.kernels.decode
    size = model.cached_layers * model.kv_numbers(replica.tp) * replica.kv_number_bytes
    cold = size / (decode.bandwidth * replica.peaks("bf16").bandwidth)
    return cold * (1 + decode.setup_tokens / SETUP_CONTEXT)


def _talk_s(replica: Replica, rows: int) -> float:
    """All-reduces and elementwise kernels of `rows` rows."""
    times = kernel_times(replica, Work(rows, 1))
    return times.allreduce + times.elementwise


def _matrices_s(replica: Replica, rows: float) -> float:
    """Matrix products of `rows` rows, and reading the head, without what it takes to start them."""
    model, tp, kernels = replica.model, replica.tp, replica.kernels
    rates, size = kernels.rates(replica.weights), weight_bytes(replica.weights)
    layers = rates.time(model.matrices(tp), rows, size, replica.peaks(replica.weights))
    return layers - rates.launch(model.matrices(tp)) + _head_s(replica)


def _ridge(matrices_s: Callable[[float], float], weights: int, row: int) -> tuple[tuple[int, int], ...]:
    """Tangents of the matrix products' time around the ridge of a dense model, as lines (base, per row) in clock units.

    Only those that leave both ends to w and c: none that rises as fast as c.
    """
    lines: list[tuple[int, int]] = []
    for part in RIDGE:
        rows = max(1.0, part * weights / row)
        here, there = matrices_s(rows), matrices_s(rows * NEAR)
        slope = to_units((there - here) / (rows * (NEAR - 1)))
        base = to_units(here) - round(slope * rows)
        if base > 0 and slope < row:
            lines.append((base, slope))
    return tuple(lines)


def _stream_points(replica: Replica) -> list[tuple[int, int]]:
    """(rows, w) in clock units, up to where every expert is touched."""
    rows = [1]
    while rows[-1] < ALL_TOUCHED:
        rows.append(2 * rows[-1])
    return [(count, to_units(_stream_s(replica, count))) for count in rows]


def _stream_s(replica: Replica, rows: int) -> float:
    model, tp = replica.model, replica.tp
    rates, size = replica.kernels.rates(replica.weights), weight_bytes(replica.weights)
    layers = sum(rates.stream(matrix, rows, size, replica.peaks(replica.weights)) for matrix in model.matrices(tp))
    return layers + _head_s(replica)


def _head_s(replica: Replica) -> float:
    """Reading the output head."""
    rates = replica.kernels.rates("bf16")
    return rates.stream(replica.model.head(replica.tp), 1, weight_bytes("bf16"), replica.peaks("bf16"))
