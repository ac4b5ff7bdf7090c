"""A recorded run: what a real vLLM was asked, and when it scheduled, began and ended every answer."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, cast

from ..engine.arrival import LATEST_NS, Arrival
from .errors import RecordingError
from .json_lines import Fields, read_lines

_NS_PER_S = 1_000_000_000
_STAMPS = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")
_MOST_TOKENS = 10**8


class RecordedRequest(NamedTuple):
    """A request and its stamps, UTC nanoseconds: what arrived, and what the engine did with it."""

    arrival: Arrival
    queued_ns: int
    """When the engine took it out of its inbox, which it does at the borders of its steps."""
    scheduled_ns: int
    first_token_ns: int
    last_token_ns: int

    @property
    def ttft_ns(self) -> int:
        """From the queue to the first token."""
        return self.first_token_ns - self.queued_ns

    @property
    def decode_ns(self) -> int:
        """From the first token to the last."""
        return self.last_token_ns - self.first_token_ns


class Tick(NamedTuple):
    """A line of a time series: how many sequences rode at an instant (UTC)."""

    at_ns: int
    running: int


@dataclass(frozen=True)
class Recording:
    """The requests of one run in order of arrival, and its time series if there is one."""

    requests: tuple[RecordedRequest, ...]
    ticks: tuple[Tick, ...] = ()


def read_recording(requests: Path, prefix_blocks: Path | None = None, timeseries: Path | None = None) -> Recording:
    """Read `requests` (JSON lines), the ids of the prompts' full blocks (JSON lines) and a time series (CSV).

    The engine's monotonic stamps are put on the wall clock by the largest arrival − queued: no request is queued
    before it arrives, and the quickest is taken as queued when it arrived.

    Raises:
        RecordingError: a file that does not hold what it should.
        OSError: a file that cannot be read.
    """
    rows = list(read_lines(requests))
    if not rows:
        raise RecordingError(requests, None, "holds no requests")
    ids = {} if prefix_blocks is None else _prefix_ids(prefix_blocks)
    offset = max(_number(requests, *row, "arrival_time") - _number(requests, *row, "queued_ts") for row in rows)
    read = [_request(requests, number, fields, offset, ids) for number, fields in rows]
    read.sort(key=lambda request: request.arrival.arrived_ns)
    if len({request.arrival.request_id for request in read}) < len(read):
        raise RecordingError(requests, None, "has two requests with the same request_id")
    return Recording(tuple(read), () if timeseries is None else _ticks(timeseries, read[0].arrival.arrived_ns))


def _request(
    path: Path, line: int, fields: Fields, offset: Decimal, ids: Mapping[str, tuple[int, ...]]
) -> RecordedRequest:
    arrived_ns = _ns(path, line, _number(path, line, fields, "arrival_time"))
    stamps = [_ns(path, line, _number(path, line, fields, name) + offset) for name in _STAMPS]
    if sorted(stamps) != stamps:
        raise RecordingError(path, line, f"{', '.join(_STAMPS)} are not in order")
    request_id = str(fields.get("request_id") or f"line-{line}")
    arrival = Arrival(
        request_id=request_id,
        tenant_id="recorded",
        tier="standard",
        arrived_ns=arrived_ns,
        prompt_tokens=_tokens(path, line, fields, "input_toks"),
        output_tokens=_tokens(path, line, fields, "output_toks"),
        prefix_ids=ids.get(request_id),
    )
    return RecordedRequest(arrival, *stamps)


def _number(path: Path, line: int, fields: Fields, name: str) -> Decimal:
    value = fields.get(name)
    if type(value) not in (int, Decimal) or not Decimal(value or 0).is_finite():
        raise RecordingError(path, line, f"{name} {'is missing' if name not in fields else 'is not a number'}")
    return Decimal(value or 0)


def _ns(path: Path, line: int, seconds: Decimal) -> int:
    ns = int((seconds * _NS_PER_S).to_integral_value())
    if not 0 <= ns < LATEST_NS:
        raise RecordingError(path, line, f"{seconds} s is no time between 1970 and 2200")
    return ns


def _tokens(path: Path, line: int, fields: Fields, name: str) -> int:
    value = fields.get(name)
    if type(value) is not int or not 1 <= value < _MOST_TOKENS:
        raise RecordingError(path, line, f"{name} must be a whole number of at least 1")
    return value


def _prefix_ids(path: Path) -> dict[str, tuple[int, ...]]:
    ids: dict[str, tuple[int, ...]] = {}
    for line, fields in read_lines(path):
        blocks = fields.get("block_hash_ids")
        if not isinstance(blocks, list) or any(type(block) is not int for block in cast("list[Any]", blocks)):
            raise RecordingError(path, line, "block_hash_ids is not a list of whole numbers")
        ids[str(fields.get("request_id"))] = tuple(cast("list[int]", blocks))
    return ids


def _ticks(path: Path, start_ns: int) -> tuple[Tick, ...]:
    """A time series counts its seconds from the start of the run, which is about the first arrival."""
    with path.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines)
        try:
            return tuple(Tick(start_ns + round(float(row["t"]) * _NS_PER_S), int(row["running"])) for row in rows)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise RecordingError(path, rows.line_num, "t and running must be numbers") from error
