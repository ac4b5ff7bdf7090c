"""Requests: what is known of each while it is served, and the columns of those that ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...events import FinishReason
from ...roofline.step_model import UNIT_BITS, StepModel
from ..config import EngineConfig
from .chunks import Chunks, part
from .decode_rows import Ints, Rides
from .inflow import UNLIMITED, Inflow
from .log import Segment
from .steps import StepColumns
from .sums import running

UNKNOWN = -1
REASONS: tuple[FinishReason, ...] = ("stop", "length", "abort", "rejected")


class RequestColumns(NamedTuple):
    """Requests in the order of their ends, int64[requests] and lists; see `Request`. UNKNOWN stands for null."""

    request_id: Sequence[str]
    group: Ints
    arrived_ns: Ints
    scheduled_ns: Ints
    first_token_ns: Ints
    finished_ns: Ints
    prompt_tokens: Ints
    cached_tokens: Ints
    output_tokens: Ints
    max_tokens: Ints
    reason: Ints
    """Which of REASONS."""
    preemptions: Ints
    prefix_ids: Sequence[tuple[int, ...] | None]
    gpu_ns: Ints


class _Ends(NamedTuple):
    """Who ended, int64[ends]; `UNKNOWN` reason and tokens for those who got their last token."""

    request: Ints
    before: Ints
    """The step before which it ended, from the segment's first."""
    kind: Ints
    """Those of one kind end before those of a later kind, if before the same step."""
    finished_ns: Ints
    reason: Ints
    output_tokens: Ints


class Requests:
    """What the steps so far say of each request."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._scheduled = np.zeros(0, np.int64)
        self._first_token = np.zeros(0, np.int64)
        self._ns = np.zeros(0, np.int64)
        """Each one's part of the steps in whole nanoseconds, and `_fraction` the rest in clock units."""
        self._fraction = np.zeros(0, np.int64)
        self._preemptions = np.zeros(0, np.int64)
        self._cached = np.zeros(0, np.int64)

    def ended(
        self, inflow: Inflow, segment: Segment, rides: Rides, chunks: Chunks, steps: StepColumns
    ) -> RequestColumns:
        """Take note of a segment; returns the requests that ended in it."""
        self._keep(segment.forgotten, inflow.taken)
        self._note(chunks, steps)
        self._charge(rides, chunks, steps)
        np.add.at(self._preemptions, segment.log.preempted[1::2], 1)
        np.add.at(self._cached, chunks.request, chunks.cached)
        ends = _ends(inflow, segment, rides, chunks, steps)
        order = np.lexsort((ends.finished_ns, ends.kind, ends.before))
        who, _, _, finished_ns, reason, output_tokens = (column[order] for column in ends)
        known = inflow.columns
        target, limit = known.target[who], known.limit[who]
        natural = np.where((limit != UNLIMITED) & (target == limit), REASONS.index("length"), REASONS.index("stop"))
        ids, prefix_ids = inflow.names(who.tolist())
        return RequestColumns(
            request_id=ids,
            group=known.group[who],
            arrived_ns=known.arrived_ns[who],
            scheduled_ns=self._scheduled[who],
            first_token_ns=self._first_token[who],
            finished_ns=finished_ns,
            prompt_tokens=known.prompt[who],
            cached_tokens=self._cached[who],
            output_tokens=np.where(output_tokens == UNKNOWN, target, output_tokens),
            max_tokens=limit,
            reason=np.where(reason == UNKNOWN, natural, reason),
            preemptions=self._preemptions[who],
            prefix_ids=prefix_ids,
            gpu_ns=(self._ns[who] + (self._fraction[who] >> UNIT_BITS)) * self._config.gpus,
        )

    def _keep(self, forgotten: int, size: int) -> None:
        """Drop the first `forgotten` requests, and make room for `size` of them in all."""
        more = size - (len(self._ns) - forgotten)
        unknown, zeros = np.full(more, UNKNOWN), np.zeros(more, np.int64)
        self._scheduled, self._first_token = (
            np.append(column[forgotten:], unknown) for column in (self._scheduled, self._first_token)
        )
        self._ns, self._fraction, self._preemptions, self._cached = (
            np.append(column[forgotten:], zeros)
            for column in (self._ns, self._fraction, self._preemptions, self._cached)
        )

    def _note(self, chunks: Chunks, steps: StepColumns) -> None:
        """When each one's first chunk began, and when its first token was there."""
        ended = steps.started_ns + steps.duration_ns
        for known, moments, these in (
            (self._scheduled, steps.started_ns, chunks.boards),
            (self._first_token, ended, chunks.sampled),
        ):
            here = these & (known[chunks.request] == UNKNOWN)
            who, first = np.unique(chunks.request[here], return_index=True)
            known[who] = moments[chunks.step[here][first]]

    def _charge(self, rides: Rides, chunks: Chunks, steps: StepColumns) -> None:
        """Add each one's part of the segment's steps, rounded down per step and sequence."""
        model = self._config.step_model
        shared = _shared(model, np.maximum(steps.running, 1), steps.decode_tokens + steps.prefill_tokens)
        length = rides.end - rides.begin
        context = length * (rides.begin - rides.origin) + length * (length - 1) // 2
        token_units = model.attention(1, 0)
        at = chunks.step
        rows = (steps.decode_tokens + steps.prefill_tokens)[at]
        prefilled = (
            model.overhead // steps.running[at] + part(model.linear_column(rows), chunks.rows, rows) + chunks.attn
        )
        for sums, whole, until in zip((self._ns, self._fraction), (True, False), running(shared), strict=True):
            ridden = until[rides.end] - until[rides.begin] + int(_split(token_units, whole)) * context
            np.add.at(sums, rides.request, ridden)
            np.add.at(sums, chunks.request, _split(prefilled, whole))


def _shared(model: StepModel, seqs: Ints, rows: Ints) -> Ints:
    """What each decode row of a step bears beside its attention; most steps have as many rows as sequences."""
    few = np.arange(1, int(seqs.max(initial=0)) + 1)
    shared = np.append(0, model.overhead // few + model.linear_column(few) // few)[seqs]
    other = np.flatnonzero(rows > seqs)
    shared[other] = model.overhead // seqs[other] + model.linear_column(rows[other]) // rows[other]
    return shared


def _split(units: Any, whole: bool) -> Any:
    """Whole nanoseconds of clock units, or the rest: together their sums need not fit."""
    return units >> UNIT_BITS if whole else units & ((1 << UNIT_BITS) - 1)


def _ends(inflow: Inflow, segment: Segment, rides: Rides, chunks: Chunks, steps: StepColumns) -> _Ends:
    """Everybody who ended, each kind by itself in order."""
    ended = steps.started_ns + steps.duration_ns
    parts: list[_Ends] = []
    for kind, (who, before) in enumerate(
        (
            (rides.request[rides.done], rides.end[rides.done]),
            (chunks.request[chunks.ends], chunks.step[chunks.ends] + 1),
        )
    ):
        unknown = np.full(len(who), UNKNOWN)
        parts.append(_Ends(who, before, np.full(len(who), kind), ended[before - 1], unknown, unknown))
    for who, step, at_ns, reason, output_tokens in segment.log.endings:
        before, finished_ns = step - segment.first, at_ns
        if reason == "rejected":
            noticed = int(np.searchsorted(steps.started_ns, inflow.arrived_ns[who]))
            if noticed < len(ended):
                before, finished_ns = noticed, min(at_ns, int(steps.started_ns[noticed]))
        row = (who, before, len(parts), finished_ns, REASONS.index(reason), output_tokens)
        parts.append(_Ends(*(np.array([value], np.int64) for value in row)))
    return _Ends(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
