"""Public traces of requests: Azure's CSV and Mooncake's JSON lines, read as the embedded engine reads them.

They tell when requests arrived and how long they were, and nothing of when they ended: that is taken as their arrival.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from ...engine.arrival import Arrival
from ...engine.workloads import azure, mooncake
from ...engine.workloads.tenant import tenant_of
from ..usage.usage import Usage
from .files import unpacked
from .found import Beginning, Context, Format, Line


def _read_azure(path: Path, context: Context) -> Iterator[Line]:
    return _lines(path, context, azure.read)


def _read_mooncake(path: Path, context: Context) -> Iterator[Line]:
    return _lines(path, context, lambda plain, tenant: mooncake.read(plain, tenant, context.at_ns))


def _lines(path: Path, context: Context, arrivals: Callable[[Path, str], Iterator[Arrival]]) -> Iterator[Line]:
    """A file is told from others by its content: the same row of the same file has the same id."""
    with unpacked(path) as plain:
        tenant = context.tenant or tenant_of(plain)
        mark = hashlib.sha256(plain.read_bytes()).hexdigest()[:12]
        for arrival in arrivals(plain, tenant):
            row = int(arrival.request_id.rpartition("-")[2])
            usage = Usage(arrival.prompt_tokens, None, arrival.output_tokens)
            request = context.request(
                f"{mark}-{row}", usage, tenant_id=tenant, model="", finished_ns=arrival.arrived_ns
            )._replace(prefix_ids=arrival.prefix_ids)
            yield Line(row, "", request)


def _has(*columns: str) -> Callable[[Beginning], bool]:
    return lambda begins: any(set(columns) <= fields.keys() for fields in begins.records)


AZURE = Format("azure", _has(*azure.COLUMNS), _read_azure)
MOONCAKE = Format("mooncake", _has("timestamp", "input_length", "output_length"), _read_mooncake)
