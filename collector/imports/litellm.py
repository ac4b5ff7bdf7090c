"""LiteLLM's spend logs: the table LiteLLM_SpendLogs as CSV, JSON, or the answer of `/spend/logs`.

Columns as in LiteLLM's schema.prisma (model LiteLLM_SpendLogs): times are UTC, `cache_hit` is a word, `metadata` holds
the sender's usage. Token columns of failed requests are 0 by default, which says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...events import FinishReason
from ..usage.answers import usage_of
from ..usage.fields import Json, child
from ..usage.usage import NOTHING_TOLD, Usage
from .files import lines_of
from .found import Beginning, Context, Format, Line, RowError, Saved, Thing
from .values import instant, nested, required, whole, word

_COLUMNS = {"request_id", "call_type", "startTime", "endTime"}


def looks(begins: Beginning) -> bool:
    """Whether a file has the table's columns."""
    return any(fields.keys() >= _COLUMNS for fields in begins.records)


def read(path: Path, context: Context) -> Iterator[Line]:
    """The requests of a file; `team_id` names the tenant unless told otherwise."""
    return lines_of(path, context, _request)


def _request(fields: Json, context: Context) -> Thing:
    request_id = word(fields, "request_id")
    if not request_id:
        raise RowError("request_id is missing")
    if word(fields, "cache_hit").lower() == "true":
        return Saved((whole(fields, "prompt_tokens") or 0) + (whole(fields, "completion_tokens") or 0))
    metadata = nested(fields, "metadata")
    reason = _reason(fields, metadata)
    return context.request(
        request_id,
        NOTHING_TOLD if reason != "stop" else _usage(fields, metadata),
        tenant_id=context.tenant_of(fields.get(context.tenant_by or "team_id")),
        model=word(fields, "model", "model_group"),
        arrived_ns=instant(fields, "startTime"),
        first_token_ns=instant(fields, "completionStartTime"),
        finished_ns=required(instant(fields, "endTime"), "endTime"),
        finish_reason=reason,
    )


def _usage(fields: Json, metadata: Json) -> Usage:
    """The columns, with what only the metadata knows: cached and reasoning tokens."""
    told = {name: whole(fields, name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")}
    details = {**child(metadata, "usage_object"), **child(metadata, "additional_usage_values")}
    return usage_of({"usage": {**details, **told}})


def _reason(fields: Json, metadata: Json) -> FinishReason:
    status = word(fields, "status") or word(metadata, "status")
    if status.lower() != "failure":
        return "stop"
    code = word(child(metadata, "error_information"), "error_code")
    return "rejected" if code.startswith("4") else "error"


FORMAT = Format("litellm", looks, read)
