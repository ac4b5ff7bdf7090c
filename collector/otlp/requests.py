"""Requests in vLLM's traces: one span `llm_request` for each that finished.

Attributes as in vllm/tracing: arrival is the span's start, and latencies are seconds since then. Cached tokens, the
tenant and preemptions are not told; requests that were aborted have no span.
"""

from __future__ import annotations

from typing import Any

from ...engine.arrival import LATEST_NS
from ...events import UNKNOWN_TENANT, Request
from .spans import Span

SPAN = "llm_request"
_NS_PER_S = 10**9
_LATENCY, _USAGE, _REQUEST = "gen_ai.latency.", "gen_ai.usage.", "gen_ai.request."


class SpanError(ValueError):
    """A span of a request that tells too little, or nonsense."""


def request_of(span: Span, engine_id: str | None) -> Request:
    """The request of a span; `engine_id` is that of services without a name of their own.

    Raises SpanError.
    """
    told = span.attributes
    request_id = told.get(f"{_REQUEST}id")
    if not isinstance(request_id, str) or not request_id:
        raise SpanError("gen_ai.request.id is missing")
    if not 0 < span.start_ns < LATEST_NS:
        raise SpanError(f"{request_id}: it has no start")
    finished_ns = _after(span, "e2e") or max(span.start_ns, span.end_ns)
    first_ns = _within(_after(span, "time_to_first_token"), span.start_ns, finished_ns)
    output, limit = _count(told.get(f"{_USAGE}completion_tokens")), _count(told.get(f"{_REQUEST}max_tokens"))
    model = told.get("gen_ai.response.model") or told.get(f"{_REQUEST}model") or ""
    return Request(
        request_id=request_id,
        engine_id=_engine(span, engine_id),
        run_id="",
        tenant_id=UNKNOWN_TENANT,
        tier="standard",
        model=str(model),
        arrived_ns=span.start_ns,
        scheduled_ns=_within(_after(span, "time_in_queue"), span.start_ns, first_ns or finished_ns),
        first_token_ns=first_ns,
        finished_ns=finished_ns,
        prompt_tokens=_count(told.get(f"{_USAGE}prompt_tokens")),
        cached_tokens=None,
        output_tokens=output,
        reasoning_tokens=None,
        max_tokens=limit,
        finish_reason="length" if output is not None and limit is not None and output >= limit else "stop",
        preemptions=None,
        prefix_ids=None,
        gpu_ns=None,
    )


def _engine(span: Span, engine_id: str | None) -> str:
    """The service's name, if an operator gave it one (OTEL_SERVICE_NAME)."""
    service = str(span.resource.get("service.name") or "")
    has_name = bool(service) and not service.startswith("unknown_service")
    return service if has_name else engine_id or service or "unknown"


def _after(span: Span, name: str) -> int | None:
    """The instant that lies a latency after the span's start."""
    value = span.attributes.get(_LATENCY + name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 10**6:
        return None
    return span.start_ns + round(value * _NS_PER_S)


def _within(at_ns: int | None, from_ns: int, to_ns: int) -> int | None:
    return at_ns if at_ns is not None and from_ns <= at_ns <= to_ns else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
