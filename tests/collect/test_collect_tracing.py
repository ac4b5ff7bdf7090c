"""Spans that are sent to a collector end as requests in its store."""

import json
import socket
import urllib.request

import pytest
from collect_process import until

from farebox.collector.collect.tracing import TraceSource
from farebox.collector.config.sources import OtlpConfig
from farebox.errors import FareboxError


def test_spans_become_requests(collector):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    source = TraceSource(OtlpConfig(kind="otlp", listen=place, engine="chat"), collector.store)
    assert source.look().state == "up"
    values = {"gen_ai.usage.prompt_tokens": 12, "gen_ai.usage.completion_tokens": 5}
    attributes = [{"key": key, "value": {"intValue": str(value)}} for key, value in values.items()]
    attributes.append({"key": "gen_ai.request.id", "value": {"stringValue": "q1"}})
    span = {"name": "llm_request", "startTimeUnixNano": "1767312000000000000", "attributes": attributes}
    span |= {"endTimeUnixNano": "1767312001000000000", "traceId": "a" * 32, "spanId": "b" * 16}
    body = {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [span]}]}]}
    post = urllib.request.Request(
        f"http://{place}/v1/traces", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with until(lambda: urllib.request.urlopen(post)) as answer:
        assert answer.status == 200
    source.close()
    collector.look(2)
    [request] = collector.requests()
    assert (request.request_id, request.prompt_tokens, request.output_tokens) == ("q1", 12, 5)
    assert request.engine_id == "chat" and request.cached_tokens is None


def test_an_address_that_is_taken_is_said(collector):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        source = TraceSource(OtlpConfig(kind="otlp", listen=f"127.0.0.1:{taken.getsockname()[1]}"), collector.store)
        with pytest.raises(FareboxError, match="cannot listen"):
            source.look()
        source.close()
