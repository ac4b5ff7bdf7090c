"""Azure's LLM inference traces: CSV with TIMESTAMP, ContextTokens, GeneratedTokens."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from io import BytesIO
from itertools import repeat
from pathlib import Path
from typing import Any

from ..arrival import LATEST_NS, Arrival
from .errors import WorkloadError

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d):([0-5]\d)(?:\.(\d{1,9}))?(?:Z|\+00:00)?", re.ASCII)
_PLAIN = r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d:[0-5]\d\.\d{1,9}$"
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
    arrived_ns, prompts, outputs = _plain_columns(path) or _columns(path)
    order = sorted(range(len(arrived_ns)), key=arrived_ns.__getitem__)
    ids = [f"{tenant}-{row + 1}" for row in order]
    columns = ([column[row] for row in order] for column in (arrived_ns, prompts, outputs))
    return map(Arrival, ids, repeat(tenant), repeat("standard"), *columns)


def _plain_columns(path: Path) -> tuple[list[int], list[int], list[int]] | None:
    """The columns of a file without a flaw, several times as fast; None: it takes a look line by line."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    compute: Any = pc
    content = path.read_bytes()
    kinds: Any = dict(zip(COLUMNS, (pa.string(), pa.int64(), pa.int64()), strict=True))
    try:
        table: Any = csv.read_csv(BytesIO(content), convert_options=csv.ConvertOptions(column_types=kinds))
        if tuple(table.column_names) != COLUMNS or b'"' in content or not table.num_rows or _has_nulls(table):
            return None
        stamps, prompts, outputs = table.columns
        if not compute.all(compute.match_substring_regex(stamps, _PLAIN)).as_py():
            return None
        naive = compute.utf8_slice_codeunits(stamps, 0, 19).cast(pa.timestamp("s")).cast(pa.int64())
        fraction = compute.utf8_rpad(compute.utf8_slice_codeunits(stamps, 20, 29), 9, "0").cast(pa.int64())
    except pa.ArrowException:
        return None
    if not 0 <= compute.min(naive).as_py() <= compute.max(naive).as_py() < LATEST_NS // _NS_PER_S:
        return None
    if compute.min(prompts).as_py() < 1 or compute.min(outputs).as_py() < 0:
        return None
    instants: Any = naive.to_numpy() * _NS_PER_S + fraction.to_numpy()
    return instants.tolist(), prompts.to_pylist(), outputs.to_pylist()


def _has_nulls(table: Any) -> bool:
    return any(column.null_count for column in table.columns)


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
