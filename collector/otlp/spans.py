"""Spans: the few fields of a trace that count here, out of OTLP's JSON or its protobuf."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..usage.fields import Json, child, objects
from .wire import messages, number, numbers, real, texts

Attributes = Mapping[str, Any]


class Span(NamedTuple):
    """One span, and the attributes of the resource that it is from."""

    name: str
    start_ns: int
    end_ns: int
    attributes: Attributes
    resource: Attributes


def from_json(body: bytes) -> list[Span]:
    """The spans of an ExportTraceServiceRequest in OTLP's JSON; raises ValueError for what is none."""
    try:
        request = json.loads(body)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(request, dict):
        raise ValueError("not a JSON object")
    return list(_json_spans(request))  # pyright: ignore[reportUnknownArgumentType]


def _json_spans(request: Json) -> Iterator[Span]:
    for resource_spans in objects(request, "resourceSpans"):
        resource = _json_attributes(child(resource_spans, "resource"))
        for scope_spans in objects(resource_spans, "scopeSpans"):
            for span in objects(scope_spans, "spans"):
                start_ns, end_ns = (int(span.get(f"{name}TimeUnixNano") or 0) for name in ("start", "end"))
                yield Span(str(span.get("name", "")), start_ns, end_ns, _json_attributes(span), resource)


def _json_attributes(owner: Json) -> Attributes:
    return {
        str(attribute.get("key", "")): _json_value(child(attribute, "value"))
        for attribute in objects(owner, "attributes")
    }


def _json_value(value: Json) -> Any:
    if "intValue" in value:
        return int(value["intValue"])
    return next((value[name] for name in ("stringValue", "doubleValue", "boolValue") if name in value), None)


def from_protobuf(body: bytes) -> list[Span]:
    """The spans of an ExportTraceServiceRequest in protobuf; raises ValueError for what is none.

    Field numbers are those of opentelemetry/proto/trace/v1/trace.proto and common/v1/common.proto.
    """
    return list(_wire_spans(body))


def _wire_spans(request: bytes) -> Iterator[Span]:
    for resource_spans in messages(request, 1):
        resource = _wire_attributes(a for r in messages(resource_spans, 1) for a in messages(r, 1))
        for scope_spans in messages(resource_spans, 2):
            for span in messages(scope_spans, 2):
                name = next(texts(span, 5), "")
                yield Span(name, number(span, 7), number(span, 8), _wire_attributes(messages(span, 9)), resource)


def _wire_attributes(pairs: Iterable[bytes]) -> Attributes:
    return {next(texts(pair, 1), ""): _wire_value(next(messages(pair, 2), b"")) for pair in pairs}


def _wire_value(value: bytes) -> Any:
    for found in texts(value, 1):
        return found
    for found in numbers(value, 2):
        return bool(found)
    for found in numbers(value, 3):
        return found - 2**64 if found >= 2**63 else found
    return real(value, 4)
