"""nvidia-smi's CSV: `--query-gpu=… --format=csv`, once or in a loop, with or without units.

What it prints where a number is expected ("[N/A]", "[Not Supported]", "[GPU is lost]") is kept as the reason for which
there is none. Properties as in `nvidia-smi --help-query-gpu`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...events import GpuSample
from ..usage.fields import Json
from .files import lines_of
from .found import Beginning, Context, Format, Line, RowError
from .values import instant, word

MIB = 2**20


class Property(NamedTuple):
    """A property of nvidia-smi as a column of ours, times what its unit is worth."""

    column: str
    name: str
    factor: int


PROPERTIES = (
    Property("util_pct", "utilization.gpu", 1),
    Property("mem_used", "memory.used", MIB),
    Property("mem_total", "memory.total", MIB),
    Property("power_mw", "power.draw", 1000),
    Property("power_limit_mw", "power.limit", 1000),
    Property("sm_clock_mhz", "clocks.current.sm", 1),
    Property("temperature_c", "temperature.gpu", 1),
)
_ALIASES = {
    "clocks.sm": "clocks.current.sm",
    "enforced.power.limit": "power.limit",
    "power.draw.average": "power.draw",
    "power.draw.instant": "power.draw",
    "gpu_uuid": "uuid",
    "gpu_name": "name",
}
_UNIT = re.compile(r"\s*\[[^\]]*\]$")
_NUMBER = re.compile(r"(-?\d+(?:\.\d+)?)(?: (?:MiB|W|%|MHz|C))?")
_LOST = ("gpu is lost", "requires reset")


def looks(begins: Beginning) -> bool:
    """Whether a header has properties of nvidia-smi."""
    known = {each.name for each in PROPERTIES}
    return any(known & _named(fields).keys() for fields in begins.records)


def read(path: Path, context: Context) -> Iterator[Line]:
    """The samples of a file; without a `timestamp` all are from the instant that the context gives."""
    return lines_of(path, context, _sample)


def _named(fields: Json) -> dict[str, str]:
    """Cells by property, without the units in the header."""
    names = {name: _UNIT.sub("", name).strip() for name in fields}
    return {_ALIASES.get(short, short): str(fields[name]).strip() for name, short in names.items()}


def _sample(fields: Json, context: Context) -> GpuSample:
    cells = _named(fields)
    uuid, index = cells.get("uuid", ""), cells.get("index", "")
    if not uuid.startswith(("GPU-", "MIG-")) and not index.isdecimal():
        raise RowError("neither uuid nor index says which GPU it is")
    at_ns = instant(cells, "timestamp", context.tz)
    values: dict[str, int | None] = {}
    missing: dict[str, str] = {}
    for column, name, factor in PROPERTIES:
        cell = cells.get(name)
        values[column] = None if cell is None else _number(name, cell, factor)
        if values[column] is None:
            missing[column] = "not queried" if cell is None else cell.strip("[]")
    is_lost = any(mark in reason.lower() for reason in missing.values() for mark in _LOST)
    return GpuSample(
        host=context.host,
        gpu_uuid=uuid or f"index-{index}",
        at_ns=context.at_ns if at_ns is None else at_ns,
        device=int(index) if index.isdecimal() else 0,
        name=word(cells, "name"),
        parent_uuid=None,
        state="lost" if is_lost else "ok",
        mem_kind=None if values["mem_total"] is None else "own",
        power_scope=None,
        energy_mj=None,
        energy_basis=None,
        shared_by=None,
        missing=json.dumps(missing | {"energy_mj": "nvidia-smi does not tell it"}),
        **values,
    )


def _number(name: str, cell: str, factor: int) -> int | None:
    """A number in our unit; None where a word in brackets says why there is none."""
    found = _NUMBER.fullmatch(cell)
    if found is not None:
        return round(float(found[1]) * factor)
    if cell.startswith("[") or cell.upper() == "N/A":
        return None
    raise RowError(f"{name}: {cell!r} is not a number")


FORMAT = Format("nvidia-smi", looks, read)
