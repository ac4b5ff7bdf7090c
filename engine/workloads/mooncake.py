"""Mooncake's traces: JSON lines with timestamp (ms), input_length, output_length, hash_ids."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from ..arrival import Arrival
from .errors import WorkloadError

_NS_PER_MS = 1_000_000
_MOST = 10**12


def read(path: str | Path, tenant: str = "mooncake", start_ns: int = 0) -> Iterator[Arrival]:
    """The trace's requests in order of arrival, all of `tenant`; the trace's time 0 is `start_ns` (UTC).

    The whole file is read and checked before the first request comes out, and rows out of order are put in order (rows
    of one instant keep theirs). Requests are numbered as their rows are, from 1.

    Raises:
        WorkloadError: a bad row.
        OSError: the file cannot be read.
    """
    path = Path(path)
    arrivals: list[Arrival] = []
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    arrivals.append(_arrival(path, number, line, tenant, len(arrivals) + 1, start_ns))
    except UnicodeDecodeError as error:
        raise WorkloadError(path, None, f"not a UTF-8 text file ({error.reason})") from error
    return iter(sorted(arrivals, key=lambda arrival: arrival.arrived_ns))


def _arrival(path: Path, number: int, line: str, tenant: str, row: int, start_ns: int) -> Arrival:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise WorkloadError(path, number, f"not JSON ({error.msg} at column {error.colno})") from error
    except (RecursionError, ValueError) as error:
        raise WorkloadError(path, number, "nested too deeply or a number too long to be a trace") from error
    if not isinstance(record, dict):
        raise WorkloadError(path, number, "not a JSON object")
    fields = cast("dict[str, Any]", record)
    return Arrival(
        request_id=f"{tenant}-{row}",
        tenant_id=tenant,
        tier="standard",
        arrived_ns=start_ns + _count(path, number, fields, "timestamp", 0) * _NS_PER_MS,
        prompt_tokens=_count(path, number, fields, "input_length", 1),
        output_tokens=_count(path, number, fields, "output_length", 0),
        prefix_ids=_ids(path, number, fields.get("hash_ids")),
    )


def _count(path: Path, number: int, fields: dict[str, Any], name: str, at_least: int) -> int:
    value = fields.get(name)
    if type(value) is not int:
        found = "is missing" if name not in fields else f"{json.dumps(value)} is not a whole number"
        raise WorkloadError(path, number, f"{name} {found}")
    if not at_least <= value < _MOST:
        raise WorkloadError(path, number, f"{name} is {value}; it must be at least {at_least} and below 10¹²")
    return value


def _ids(path: Path, number: int, value: object) -> tuple[int, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list) or any(type(item) is not int for item in cast("list[object]", value)):
        raise WorkloadError(path, number, "hash_ids is not a list of whole numbers")
    return tuple(cast("list[int]", value))
