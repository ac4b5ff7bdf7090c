"""Plain request logs: one JSON object per line with an id and tokens, in whatever dialect they are counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..usage.answers import usage_of
from ..usage.ends import finish_of, finish_of_status
from ..usage.fields import Json, child
from ..usage.usage import NOTHING_TOLD
from .files import lines_of
from .found import Beginning, Context, Format, Line, RowError, Saved, Thing
from .values import instant, whole, word

_TENANTS = ("tenant_id", "tenant", "team", "user")
_COUNTS = ("usage", "input_tokens", "prompt_tokens", "output_tokens", "completion_tokens")


def looks(begins: Beginning) -> bool:
    """Whether records have an id and tokens."""
    return any("request_id" in fields and any(name in fields for name in _COUNTS) for fields in begins.records)


def read(path: Path, context: Context) -> Iterator[Line]:
    """The requests of a file.

    Times: `arrived_at` and `finished_at`. The model of a request with an `adapter` is the adapter.
    """
    return lines_of(path, context, _request)


def _request(fields: Json, context: Context) -> Thing:
    request_id = word(fields, "request_id")
    if not request_id:
        raise RowError("request_id is missing")
    flat = {name: whole(fields, name) for name in _COUNTS[1:] if name in fields}
    usage = usage_of({**fields, "usage": child(fields, "usage") or flat})
    if word(fields, "client_cache_hit").lower() == "true":
        return Saved((usage.prompt_tokens or 0) + (usage.output_tokens or 0))
    reason = finish_of_status(whole(fields, "status") or 200)
    finished_ns = instant(fields, "finished_at", context.tz)
    named = fields.get(context.tenant_by) if context.tenant_by else word(fields, *_TENANTS)
    return context.request(
        request_id,
        NOTHING_TOLD._replace(prompt_tokens=usage.prompt_tokens) if reason else usage,
        tenant_id=context.tenant_of(named),
        model=word(fields, "adapter", "model"),
        arrived_ns=instant(fields, "arrived_at", context.tz),
        finished_ns=context.at_ns if finished_ns is None else finished_ns,
        finish_reason=reason or finish_of(fields) or "stop",
    )


FORMAT = Format("jsonl", looks, read)
