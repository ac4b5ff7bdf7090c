"""Spelling out: from a segment's log to the columns of its steps, cells and requests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...events import Tier
from ..cell import CellKey
from ..config import EngineConfig
from .cells import CellColumns, block_ns, cell_keys, cells_of
from .chunks import Chunks, attention
from .decode_rows import DecodeRows, Ints, Rides, decode_rows
from .inflow import Inflow
from .log import BOARDS, CACHED_FIELDS, CHUNK_FIELDS, COMPLETES, ENDS, PARTS_FIELDS, RIDE_FIELDS, Segment
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
        rides, chunks = self._rides(segment, rank_of), self._chunks(segment, rank_of)
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

    def _rides(self, segment: Segment, rank_of: Ints) -> Rides:
        request, begin, origin, end = np.array(segment.log.rides, np.int64).reshape(-1, RIDE_FIELDS).T - np.array(
            [[0], [segment.first], [segment.first], [segment.first]]
        )
        done = end <= segment.steps
        end = np.minimum(end, segment.steps)
        for number, step in segment.log.cut.items():
            end[number], done[number] = step - segment.first, False
        group = rank_of[np.frombuffer(self._inflow.group, np.int64)[request]]
        held = np.array(segment.log.held or np.zeros(len(request)), np.int64)
        return Rides(request, group, begin, origin, held, end, done)

    def _chunks(self, segment: Segment, rank_of: Ints) -> Chunks:
        step, request, rows, before, high_water, flags = (
            np.array(segment.log.chunks, np.int64).reshape(-1, CHUNK_FIELDS).T
        )
        prompt, target, group = (
            np.frombuffer(column, np.int64)[request]
            for column in (self._inflow.prompt, self._inflow.target, self._inflow.group)
        )
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
        arrived_ns, blocks = (
            np.frombuffer(column, np.int64)[came] for column in (self._inflow.arrived_ns, self._inflow.blocks)
        )
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
