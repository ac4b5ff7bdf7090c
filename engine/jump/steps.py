"""Steps: the columns of a segment's steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...roofline.step_model import UNIT_BITS
from ..config import EngineConfig
from .chunks import Chunks, pairs
from .decode_rows import DecodeRows, Ints
from .log import HASHED_FIELDS, IDLE_FIELDS, Segment
from .sums import running

_MASK = (1 << UNIT_BITS) - 1


class StepColumns(NamedTuple):
    """What differs from step to step, int64[steps]; see `Step`."""

    started_ns: Ints
    duration_ns: Ints
    idle_before_ns: Ints
    running: Ints
    waiting: Ints
    prefill_seqs: Ints
    decode_seqs: Ints
    prefill_tokens: Ints
    decode_tokens: Ints
    output_tokens: Ints
    cached_tokens: Ints
    recomputed_tokens: Ints
    kv_blocks_used: Ints
    preemptions: Ints
    flops: Ints
    bytes: Ints


def steps_of(
    config: EngineConfig, segment: Segment, decodes: DecodeRows, chunks: Chunks, arrived_ns: Ints
) -> StepColumns:
    """The steps of a segment; `decodes` are its decode rows of all groups as one, `arrived_ns` of who came to wait."""
    model, size = config.step_model, segment.steps
    n, seen, blocks = (_spread(decodes.step, column, size) for column in (decodes.seqs, decodes.seen, decodes.blocks))
    count = chunks.per_step(np.ones_like(chunks.step), size)
    rows = n + chunks.per_step(chunks.rows, size)
    decoded = chunks.decode_rows
    decode_tokens = n + chunks.per_step(decoded, size)
    attn = model.attention(1, 0) * seen + chunks.per_step(chunks.attn, size)
    started, ended = _times(segment, model.step_column(rows, attn))
    row_pairs = seen + chunks.per_step(pairs(chunks.rows, chunks.before), size)
    return StepColumns(
        started_ns=started,
        duration_ns=ended - started,
        idle_before_ns=_idle(segment, started, ended),
        running=n + count,
        waiting=_waiting(segment, chunks, started, arrived_ns),
        prefill_seqs=chunks.per_step(chunks.rows > decoded, size),
        decode_seqs=n + chunks.per_step(decoded > 0, size),
        prefill_tokens=rows - decode_tokens,
        decode_tokens=decode_tokens,
        output_tokens=n + chunks.per_step(chunks.sampled, size),
        cached_tokens=chunks.per_step(chunks.cached, size),
        recomputed_tokens=chunks.per_step(chunks.redone, size),
        kv_blocks_used=blocks + chunks.per_step(chunks.blocks(config.block_size), size) + _hashed(segment),
        preemptions=_count(segment, np.array(segment.log.preempted[::2], np.int64)),
        flops=model.flops_row * rows + model.flops_pair * row_pairs,
        bytes=model.weight_bytes + model.kv_token_bytes * (seen + chunks.per_step(chunks.before + chunks.rows, size)),
    )


def _times(segment: Segment, units: Ints) -> tuple[Ints, Ints]:
    """Start and end of each step, UTC."""
    ns, rest = running(units)
    begin_ns = segment.base_ns + (segment.clock >> UNIT_BITS)
    rest += segment.clock & _MASK
    idles = [
        (step - segment.first, gap)
        for step, gap in zip(segment.log.idles[::IDLE_FIELDS], segment.log.idles[1::IDLE_FIELDS], strict=True)
        if step < segment.first + segment.steps
    ]
    if not idles:
        times = ns + (rest >> UNIT_BITS) + begin_ns
        return times[:-1], times[1:]
    waited, odd = (
        np.append(0, np.cumsum(np.array(part, np.int64)))
        for part in ([gap >> UNIT_BITS for _, gap in idles], [gap & _MASK for _, gap in idles])
    )
    so_far = np.searchsorted([step for step, _ in idles], np.arange(segment.steps), side="right")
    late, left = begin_ns + waited[so_far], odd[so_far]
    return (
        ns[:-1] + late + ((rest[:-1] + left) >> UNIT_BITS),
        ns[1:] + late + ((rest[1:] + left) >> UNIT_BITS),
    )


def _idle(segment: Segment, started: Ints, ended: Ints) -> Ints:
    """Time without a step before each step."""
    idle = started.copy()
    idle[1:] -= ended[:-1]
    idle[:1] -= segment.ended_ns
    return idle


def _waiting(segment: Segment, chunks: Chunks, started_ns: Ints, arrived_ns: Ints) -> Ints:
    """Who is in the queue in each step: whoever has come by its start and has not got on."""
    came = np.bincount(np.searchsorted(started_ns, arrived_ns), minlength=segment.steps + 1)[: segment.steps]
    put_back, hung_up = (np.array(steps, np.int64) for steps in (segment.log.preempted[::2], segment.log.hung_up))
    boarded = chunks.per_step(chunks.boards, segment.steps)
    return segment.waiting + np.cumsum(came + _count(segment, put_back) - _count(segment, hung_up) - boarded)


def _hashed(segment: Segment) -> Ints | int:
    """Hashed KV blocks in use in each step."""
    if not segment.log.hashed:
        return 0
    since, blocks = np.array(segment.log.hashed, np.int64).reshape(-1, HASHED_FIELDS).T
    return blocks[np.searchsorted(since - segment.first, np.arange(segment.steps), side="right") - 1]


def _count(segment: Segment, steps: Ints) -> Ints:
    """How often each of the segment's steps is among `steps`, numbered from the run's first."""
    return np.bincount(steps - segment.first, minlength=segment.steps + 1)[: segment.steps].astype(np.int64)


def _spread(step: Ints, column: Ints, steps: int) -> Ints:
    """Values of some steps as a column of all; 0 for the others."""
    if len(step) == steps:
        return column
    spread = np.zeros(steps, np.int64)
    spread[step] = column
    return spread
