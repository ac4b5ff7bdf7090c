"""OpenAI's usage exports: sums per bucket of time, as CSV from the dashboard or as pages of the usage API.

Fields as in OpenAI's API reference, "Completions usage object": `input_tokens` holds cached ones; `start_time` and
`end_time` are seconds since 1970. Requests are told as a number only.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..usage.fields import Json, objects
from ..usage.usage import Usage
from .files import records
from .found import Beginning, Bucket, Context, Format, Line, RowError
from .values import instant, required, whole, word

_TIERS = {"priority": "fast", "flex": "batch"}


def looks(begins: Beginning) -> bool:
    """Whether a file has OpenAI's buckets."""
    return any(
        _is_page(fields) or {"start_time", "end_time", "input_tokens"} <= fields.keys() for fields in begins.records
    )


def read(path: Path, context: Context) -> Iterator[Line]:
    """The buckets of a file; `project_id` names the tenant unless told otherwise."""
    for number, text, fields in records(path):
        if isinstance(fields, RowError):
            yield Line(number, text, fields)
            continue
        for result in _results(fields):
            try:
                thing = _bucket(result, context)
            except RowError as error:
                thing = error
            if thing is not None:
                yield Line(number, text, thing)


def _is_page(fields: Json) -> bool:
    return fields.get("object") in ("page", "bucket") and ("data" in fields or "results" in fields)


def _results(fields: Json) -> Iterator[Json]:
    """Rows of CSV as they are; results of pages with the times of their bucket."""
    if not _is_page(fields):
        yield fields
        return
    for bucket in objects(fields, "data") or [fields]:
        times = {name: bucket.get(name) for name in ("start_time", "end_time")}
        for result in objects(bucket, "results"):
            yield {**result, **times}


def _bucket(fields: Json, context: Context) -> Bucket | None:
    """A bucket; None for one in which nothing was used."""
    start_ns, end_ns = (required(instant(fields, name), name) for name in ("start_time", "end_time"))
    if end_ns <= start_ns:
        raise RowError("it ends before it begins")
    requests = whole(fields, "num_model_requests") or 0
    usage = Usage(*(whole(fields, name) for name in ("input_tokens", "input_cached_tokens", "output_tokens")))
    if not requests and not any(usage[:3]):
        return None
    is_batch = word(fields, "batch").lower() == "true"
    tier = "batch" if is_batch else _TIERS.get(word(fields, "service_tier"), "standard")
    tenant_id = context.tenant_of(fields.get(context.tenant_by or "project_id"))
    return Bucket(start_ns, end_ns, tenant_id, word(fields, "model"), tier, requests, usage)


FORMAT = Format("openai", looks, read)
