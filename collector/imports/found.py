"""What a line of a foreign file turns out to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ...engine.server.access import LONGEST_NAME
from ...events import UNKNOWN_TENANT, FinishReason, GpuSample, Request
from ..usage.fields import Json
from ..usage.usage import Usage


class RowError(ValueError):
    """A line that cannot be used, and why."""


class Saved(NamedTuple):
    """A request that a cache before the engine answered: no work, so no record."""

    tokens: int


class Bucket(NamedTuple):
    """What one group of requests used within a stretch of time; the requests themselves are not told."""

    start_ns: int
    end_ns: int
    tenant_id: str
    model: str
    tier: str
    requests: int
    usage: Usage


Thing = Request | Bucket | GpuSample | Saved


class Line(NamedTuple):
    """One line (or record) of a file, from 1: what it is, or why it is of no use."""

    number: int
    text: str
    thing: Thing | RowError


@dataclass(frozen=True, kw_only=True)
class Context:
    """What the files do not say themselves."""

    engine_id: str
    host: str
    tenant: str | None = None
    """The tenant of every line; None: the file says."""
    tenant_by: str | None = None
    """The column that names the tenant; None: the format's own choice."""
    at_ns: int = 0
    """When a file without times is from, UTC."""
    tz: str = "UTC"
    """The zone of times that name none."""

    def tenant_of(self, named: object) -> str:
        """The tenant that a line names; unknown where it names none, or nothing that can be a tenant's name."""
        if self.tenant is not None:
            return self.tenant
        text = str(named).strip() if isinstance(named, str | int) else ""
        is_name = text.isprintable() and 0 < len(text) <= LONGEST_NAME and text.lower() not in ("none", "null")
        return text if is_name else UNKNOWN_TENANT

    def request(
        self,
        request_id: str,
        usage: Usage,
        *,
        tenant_id: str,
        model: str,
        finished_ns: int,
        arrived_ns: int | None = None,
        first_token_ns: int | None = None,
        finish_reason: FinishReason = "stop",
        tier: str = "standard",
        max_tokens: int | None = None,
    ) -> Request:
        """A request as a record; its run is found when it is stored."""
        arrived_ns = finished_ns if arrived_ns is None else arrived_ns
        if arrived_ns > finished_ns:
            raise RowError("it ends before it begins")
        if first_token_ns is not None and not arrived_ns <= first_token_ns <= finished_ns:
            first_token_ns = None
        return Request(
            request_id, self.engine_id, "", tenant_id, tier, model, arrived_ns, None, first_token_ns, finished_ns,
            *usage[:4], max_tokens, finish_reason, None, None, None,
        )  # fmt: skip


class Beginning(NamedTuple):
    """How a file begins: its first records that can be read; none of a file that is no list of records."""

    path: Path
    records: list[Json]


class Format(NamedTuple):
    """A kind of file: its name, how it begins, and how it is read."""

    name: str
    looks: Callable[[Beginning], bool]
    read: Callable[[Path, Context], Iterator[Line]]
