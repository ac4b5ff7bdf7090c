"""Azure's LLM inference traces: CSV with TIMESTAMP, ContextTokens, GeneratedTokens."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from ..arrival import LATEST_NS, Arrival
from .errors import WorkloadError

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d):([0-5]\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)?", re.ASCII)
_NS_PER_S = 1_000_000_000


def read(path: str | Path, tenant: str) -> Iterator[Arrival]:
    """The trace's requests in order of arrival, all of `tenant`. Timestamps are UTC and exact to the nanosecond.

    The whole file is read and checked before the first request comes out, and rows out of order are put in order (rows
    of one instant keep theirs). Requests are numbered as their rows are, from 1.

    Raises:
        WorkloadError: a wrong header or a bad row.
        OSError: the file cannot be read.
    """
    path = Path(path)
    arrived_ns, prompts, outputs = _columns(path)
    order = sorted(range(len(arrived_ns)), key=arrived_ns.__getitem__)
    return (
        Arrival(f"{tenant}-{row + 1}", tenant, "standard", arrived_ns[row], prompts[row], outputs[row]) for row in order
    )


def _columns(path: Path) -> tuple[array[int], array[int], array[int]]:
    columns = array("q"), array("q"), array("q")
    arrived_ns, prompts, outputs = columns
    try:
        with path.open(encoding="utf-8-sig") as lines:
            _check_header(path, next(lines, ""))
            for number, line in enumerate(lines, start=2):
                if not line.strip():
                    continue
                cells = line.rstrip("\n").split(",")
                if len(cells) != len(COLUMNS):
                    raise WorkloadError(path, number, f"{len(cells)} columns instead of {len(COLUMNS)}")
                arrived_ns.append(_instant(path, number, cells[0]))
                prompts.append(_count(path, number, COLUMNS[1], cells[1], at_least=1))
                outputs.append(_count(path, number, COLUMNS[2], cells[2], at_least=0))
    except UnicodeDecodeError as error:
        raise WorkloadError(path, None, f"not a UTF-8 text file ({error.reason})") from error
    return columns


def _check_header(path: Path, line: str) -> None:
    found = tuple(cell.strip() for cell in line.split(","))
    if found != COLUMNS:
        raise WorkloadError(path, 1, f"columns {', '.join(found)!r} found, {', '.join(COLUMNS)!r} expected")


def _instant(path: Path, number: int, text: str) -> int:
    match = _TIMESTAMP.fullmatch(text.strip())
    if match is None:
        raise WorkloadError(path, number, f'{COLUMNS[0]} "{text}" is not a time like 2023-11-16 18:15:46.6805900')
    minute, second, fraction = match.groups()
    try:
        whole_s = _minute_s(minute) + int(second)
    except ValueError as error:
        raise WorkloadError(path, number, f'{COLUMNS[0]} "{text}" is not a time ({error})') from error
    if not 0 <= whole_s < LATEST_NS // _NS_PER_S:
        raise WorkloadError(path, number, f'{COLUMNS[0]} "{text}" is not between 1970 and 2200')
    return whole_s * _NS_PER_S + int((fraction or "0").ljust(9, "0"))


@lru_cache(maxsize=16)
def _minute_s(minute: str) -> int:
    return int(datetime.fromisoformat(minute).replace(tzinfo=UTC).timestamp())


def _count(path: Path, number: int, name: str, text: str, at_least: int) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise WorkloadError(path, number, f'{name} "{text}" is not a whole number')
    count = int(digits)
    if count < at_least:
        raise WorkloadError(path, number, f"{name} is {count}; it must be at least {at_least}")
    return count
