"""Measured steps from a CSV table like `measured_steps.csv`."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import NamedTuple

from ..configuration import REQUIRED, Configuration
from ..errors import SpecError
from .timings import Timing

MEASURED = "measured_ms"
PART_COLUMNS = ("linear_ms", "attn_ms", "allreduce_ms", "head_ms", "elem_ms")
"""Milliseconds by kind of kernel, in the order of `timings.PARTS`; used if all of them are there."""


class Table(NamedTuple):
    """The steps that could be read, and a line about each that could not."""

    timings: list[Timing]
    problems: list[str]


def read_table(lines: Iterable[str], name: str) -> Table:
    """Steps of a table with the columns `REQUIRED`, `measured_ms` and, if they are known, `PART_COLUMNS`.

    Raises SpecError for a table without the needed columns.
    """
    reader = csv.DictReader(lines)
    head = reader.fieldnames or ()
    missing = [column for column in (*REQUIRED, MEASURED) if column not in head]
    if missing:
        raise SpecError(f"{name}: no column {', '.join(missing)}; needed are {', '.join((*REQUIRED, MEASURED))}")
    table = Table([], [])
    for row in reader:
        try:
            table.timings.append(_timing(row))
        except SpecError as error:
            table.problems.append(f"{name}:{reader.line_num}: {error}")
    return table


def _timing(row: dict[str, str | None]) -> Timing:
    replica, phase, work = Configuration.read(row)
    measured = _ms(row, MEASURED)
    if not measured:
        raise SpecError(f"{MEASURED} is 0 or missing")
    parts = tuple(_ms(row, column) for column in PART_COLUMNS)
    known = [part for part in parts if part is not None]
    return Timing(replica, work, phase, measured, tuple(known) if len(known) == len(parts) else None)


def _ms(row: dict[str, str | None], column: str) -> float | None:
    text = (row.get(column) or "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise SpecError(f'{column} is "{text}"; it must be milliseconds from zero to 1e9')
    return value
