"""Recorded requests as arrivals, by columns: half a million of them are read in seconds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from ..costing import arrow
from ..costing.segments import Bools, Ints, Segments
from ..engine.arrival import Arrival
from ..engine.config import EngineConfig

COLUMNS = (
    "request_id", "engine_id", "run_id", "tenant_id", "tier", "arrived_ns", "scheduled_ns", "finished_ns",
    "prompt_tokens", "output_tokens", "max_tokens", "finish_reason", "prefix_ids",
)  # fmt: skip
"""What is read of a request; see `Request`."""
CUT_SHORT = ("abort", "error", "rejected")
"""Ends that hide how long an answer would have been."""
_NUMBER = re.compile(r"(.*?)(\d*)", re.DOTALL)
_NONE = -1


def arrivals_of(requests: pa.Table, config: EngineConfig) -> tuple[Arrival, ...]:
    """The requests of one run (rows with COLUMNS, whose lengths are told) in order of arrival.

    An answer that was cut short had at least one token to go, or as many as its tenant's usual answer has.
    """
    rows = arrow.pick(requests, _order(requests))
    output, limit = _lengths(rows, config)
    hung_up = arrow.is_one_of(rows, "finish_reason", ("abort", "error"))
    columns: tuple[Iterable[Any], ...] = (
        _list(rows, "request_id"),
        _shared(rows, "tenant_id"),
        _shared(rows, "tier"),
        arrow.ints(rows, "arrived_ns").tolist(),
        arrow.ints(rows, "prompt_tokens").tolist(),
        output.tolist(),
        _known(limit),
        _prefixes(rows),
        _known(np.where(hung_up, arrow.ints(rows, "finished_ns"), _NONE)),
        repeat(None),
    )
    return tuple(map(Arrival._make, zip(*columns, strict=False)))


def _order(requests: pa.Table) -> Ints:
    """Order of arrival (int64[requests]); of those that came at once, who got on first, else as they are numbered."""
    arrived, finished = (arrow.ints(requests, name) for name in ("arrived_ns", "finished_ns"))
    scheduled = _filled(requests, "scheduled_ns")
    boarded = np.where(scheduled == _NONE, finished, scheduled)
    order = np.lexsort((boarded, arrived))
    at_once = (np.diff(arrived[order]) == 0) & (np.diff(boarded[order]) == 0)
    groups = Segments.from_labels(np.cumsum(np.append(True, ~at_once)[: len(order)]))
    ids = requests.select(["request_id"])
    for group in np.flatnonzero(groups.sizes > 1).tolist():
        place = slice(int(groups.starts[group]), groups.end(group))
        names = [_numbered(name) for name in _list(arrow.pick(ids, order[place]), "request_id")]
        order[place] = order[place][sorted(range(len(names)), key=names.__getitem__)]
    return order


def _numbered(request_id: str) -> tuple[str, int]:
    text, number = _NUMBER.fullmatch(request_id).groups()  # pyright: ignore[reportOptionalMemberAccess] -- any text
    return text, int(number or 0)


def _lengths(rows: pa.Table, config: EngineConfig) -> tuple[Ints, Ints]:
    """Output tokens and limits as they would have been; a limit of −1 is none.

    Whoever was rejected had no room, or asked for more than there was.
    """
    prompt, output = arrow.ints(rows, "prompt_tokens"), arrow.ints(rows, "output_tokens")
    cut, rejected = arrow.is_one_of(rows, "finish_reason", CUT_SHORT), arrow.equals(rows, "finish_reason", "rejected")
    usual = _usual_lengths(rows, output, ~cut)
    room = config.usable_blocks * config.block_size - prompt
    too_long = np.where(room >= 0, np.maximum(usual, room + 1), usual)
    longer = np.maximum(output + 1, np.minimum(usual, room))
    output = np.where(rejected, too_long, np.where(cut, longer, output))
    limit = _filled(rows, "max_tokens")
    return output, np.where(rejected & (limit != _NONE), np.maximum(limit, output), limit)


def _usual_lengths(rows: pa.Table, output: Ints, whole: Bools) -> Ints:
    """For each request the median answer of its tenant that was not cut short, in tokens; 1 where none was whole."""
    tenant, tenants = arrow.coded(rows, "tenant_id")
    usual = np.ones(len(tenants), np.int64)
    for code in range(len(tenants)):
        known = np.sort(output[whole & (tenant == code)])
        if len(known):
            usual[code] = known[(len(known) - 1) // 2]
    return usual[tenant]


def _prefixes(rows: pa.Table) -> Iterable[tuple[int, ...] | None]:
    column: Any = rows.column("prefix_ids")
    if column.null_count == len(column):
        return repeat(None)
    return [None if ids is None else tuple(ids) for ids in column.to_pylist()]


def _list(rows: pa.Table, name: str) -> list[Any]:
    column: Any = rows.column(name)
    return column.to_pylist()


def _shared(rows: pa.Table, name: str) -> list[str]:
    """A column of names, each of them one object however often it occurs."""
    codes, names = arrow.coded(rows, name)
    return [names[code] for code in codes.tolist()]


def _filled(rows: pa.Table, name: str) -> Ints:
    """A column of what is never negative, −1 where it is null."""
    column: Any = rows.column(name)
    return column.fill_null(_NONE).to_numpy()


def _known(column: Ints) -> Iterable[int | None]:
    """Values, None for −1."""
    if (column == _NONE).all():
        return repeat(None)
    return [None if value == _NONE else value for value in column.tolist()]
