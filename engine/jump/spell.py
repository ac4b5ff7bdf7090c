"""Spelling out: from a segment's log to the columns of its steps, cells and requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...events import Tier
from ..cell import CellKey
from ..config import EngineConfig
from .cells import CellColumns, block_ns, cell_keys, cells_of
from .chunks import Chunks, attention
from .decode_rows import DecodeRows, Ints, Rides, decode_rows
from .inflow import Inflow
from .log import (
    BOARDS,
    CACHED_FIELDS,
    CHUNK_FIELDS,
    COMPLETES,
    CRUISE_FIELDS,
    ENDS,
    PARTS_FIELDS,
    RIDE_FIELDS,
    Segment,
)
from .requests import RequestColumns, Requests
from .steps import StepColumns, steps_of


class Spelled(NamedTuple):
    """A segment in columns; a cell's `key` is one of `keys`, and its `step` counts from `first`."""

    first: int
    steps: StepColumns
    cells: CellColumns
    kv_block_ns: Ints
    """KV blocks × time of each cell."""
    requests: RequestColumns
    keys: list[CellKey]
    groups: list[tuple[str, Tier]]
    """Tenant and tier of each request's `group`."""


class _Cruised(NamedTuple):
    """Who boarded while cruising: number of the ride, request, and step from the run's first; int64[requests]."""

    ride: Ints
    request: Ints
    step: Ints

    @classmethod
    def of(cls, segment: Segment) -> _Cruised:
        first_ride, first_request, size = np.array(segment.log.cruises, np.int64).reshape(-1, CRUISE_FIELDS).T
        number = np.arange(len(segment.log.boarded)) - np.repeat(np.cumsum(size) - size, size)
        step = np.array(segment.log.boarded, np.int64)
        return cls(np.repeat(first_ride, size) + number, np.repeat(first_request, size) + number, step)


class Speller:
    """Spells out the segments of one run, in their order."""

    def __init__(self, config: EngineConfig, inflow: Inflow) -> None:
        self._config = config
        self._inflow = inflow
        self._requests = Requests(config)

    def spell(self, segment: Segment) -> Spelled:
        """The steps, cells and requests of the next segment."""
        config, inflow = self._config, self._inflow
        names = sorted(inflow.groups)
        ranks = {name: rank for rank, name in enumerate(names)}
        rank_of = np.array([ranks[name] for name in inflow.groups], np.int64)
        cruised = _Cruised.of(segment)
        rides, chunks = self._rides(segment, rank_of, cruised), self._chunks(segment, rank_of, cruised)
        by_group = decode_rows(rides, rides.group, segment.steps, config.block_size)
        total = by_group
        if len(names) > 1:
            total = decode_rows(rides, np.zeros_like(rides.group), segment.steps, config.block_size)
        steps = steps_of(config, segment, total, chunks, self._queued(segment))
        token_units = config.step_model.attention(1, 0)
        parts = _parts(segment, by_group, rank_of)
        cells = cells_of(by_group, parts, chunks, len(names), token_units, config.block_size)
        requests = self._requests.ended(inflow, segment, rides, chunks, steps)
        return Spelled(
            segment.first,
            steps,
            cells,
            block_ns(cells, steps.duration_ns),
            requests,
            cell_keys(names),
            list(inflow.groups),
        )

    def _rides(self, segment: Segment, rank_of: Ints, cruised: _Cruised) -> Rides:
        known = self._inflow.columns
        target, prompt = (column[cruised.request] for column in (known.target, known.prompt))
        goes_on = target > 1
        by_hand = np.array(segment.log.rides, np.int64).reshape(-1, RIDE_FIELDS).T
        boarded = (cruised.ride, cruised.request, cruised.step + 1, cruised.step - prompt, cruised.step + target)
        number, request, begin, origin, end = _joined(list(by_hand), [column[goes_on] for column in boarded], 0)
        begin, origin, end = (column - segment.first for column in (begin, origin, end))
        done = end <= segment.steps
        end = np.minimum(end, segment.steps)
        if segment.log.cut:
            at = np.searchsorted(number, list(segment.log.cut))
            end[at], done[at] = np.array(list(segment.log.cut.values())) - segment.first, False
        group = rank_of[known.group[request]]
        held = np.array(segment.log.held or np.zeros(len(request)), np.int64)
        return Rides(request, group, begin, origin, held, end, done)

    def _chunks(self, segment: Segment, rank_of: Ints, cruised: _Cruised) -> Chunks:
        known = self._inflow.columns
        target, prompt = (column[cruised.request] for column in (known.target, known.prompt))
        by_hand = np.array(segment.log.chunks, np.int64).reshape(-1, CHUNK_FIELDS).T
        flags = BOARDS | COMPLETES | ENDS * (target <= 1)
        zeros = np.zeros_like(prompt)
        boarded = (cruised.step, cruised.request, prompt, zeros, zeros, flags)
        step, request, rows, before, high_water, flags = _joined(list(by_hand), boarded, 0)
        prompt, target, group = (column[request] for column in (known.prompt, known.target, known.group))
        served = np.array(segment.log.cached or np.zeros(len(request) * CACHED_FIELDS), np.int64)
        cached, held, parts = served.reshape(-1, CACHED_FIELDS).T
        return Chunks(
            request=request,
            group=rank_of[group],
            step=step - segment.first,
            rows=rows,
            before=before,
            attn=attention(self._config.step_model, rows, before),
            cached=cached,
            held=held,
            parts=parts,
            redone=np.clip(high_water - before, 0, rows),
            boards=(flags & BOARDS) > 0,
            sampled=((flags & COMPLETES) > 0) & (target > 0),
            ends=(flags & ENDS) > 0,
            decodes=np.maximum(high_water, before) >= prompt,
        )

    def _queued(self, segment: Segment) -> Ints:
        """When those came who then waited."""
        came = slice(segment.arrived.start, segment.arrived.stop)
        arrived_ns, blocks = (column[came] for column in (self._inflow.columns.arrived_ns, self._inflow.columns.blocks))
        return arrived_ns[blocks <= self._config.usable_blocks]


def _parts(segment: Segment, decodes: DecodeRows, rank_of: Ints) -> Ints:
    """Each decode row's part of the hashed KV blocks, in 2⁻²⁰ (int64[rows])."""
    if not segment.log.parts:
        return np.zeros_like(decodes.step)
    since, group, parts = np.array(segment.log.parts, np.int64).reshape(-1, PARTS_FIELDS).T
    span = segment.steps + 1
    known = rank_of[group] * span + since - segment.first
    order = np.argsort(known, kind="stable")
    at = np.searchsorted(known[order], decodes.group * span + decodes.step, side="right") - 1
    return parts[order][at]


def _joined(some: Sequence[Ints], more: Sequence[Ints], key: int) -> list[Ints]:
    """Rows of both in the order of one column, in which either's rows are."""
    columns = [np.concatenate(two) for two in zip(some, more, strict=True)]
    order = np.argsort(columns[key], kind="stable")
    return [column[order] for column in columns]
