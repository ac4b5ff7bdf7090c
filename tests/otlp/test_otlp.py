"""The OTLP receiver, as exporters talk to it: vLLM's real spans, both encodings, and everything that can be wrong."""

import gzip
import json
import struct
import time
from contextlib import suppress

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from farebox.collector.listening import listen
from farebox.collector.otlp.receiver import MOST_BYTES, OtlpReceiver
from farebox.collector.otlp.requests import request_of
from farebox.collector.otlp.spans import from_json, from_protobuf

START = 1_795_958_822_754_877_184
ATTRIBUTES = {
    "gen_ai.latency.time_to_first_token": 0.25,
    "gen_ai.latency.e2e": 0.5,
    "gen_ai.latency.time_in_queue": 0.125,
    "gen_ai.usage.prompt_tokens": 11,
    "gen_ai.usage.completion_tokens": 3,
    "gen_ai.request.id": "cmpl-1-0",
    "gen_ai.request.max_tokens": 3,
}


def json_value(value):
    if isinstance(value, str):
        return {"stringValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"doubleValue": value}


def as_json(*spans, service="vllm-a"):
    """A request of spans, each (name, start, end, attributes), in OTLP's JSON."""
    made = [
        {
            "name": name,
            "startTimeUnixNano": str(start),
            "endTimeUnixNano": str(end),
            "attributes": [{"key": key, "value": json_value(value)} for key, value in attributes.items()],
        }
        for name, start, end, attributes in spans
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
    return json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": made}]}]}).encode()


def varint(value):
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def delimited(field, raw):
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def pair(key, value):
    if isinstance(value, str):
        inner = delimited(1, value.encode())
    elif isinstance(value, int):
        inner = varint(3 << 3) + varint(value % 2**64)
    else:
        inner = varint(4 << 3 | 1) + struct.pack("<d", value)
    return delimited(1, key.encode()) + delimited(2, inner)


def as_protobuf(*spans, service="vllm-a"):
    """The same, written by hand as trace.proto has it, with fields that nobody reads between them."""
    made = b""
    for name, start, end, attributes in spans:
        span = delimited(1, b"t" * 16) + delimited(5, name.encode()) + varint(6 << 3) + b"\x02"
        span += varint(7 << 3 | 1) + struct.pack("<Q", start) + varint(8 << 3 | 1) + struct.pack("<Q", end)
        span += b"".join(delimited(9, pair(key, value)) for key, value in attributes.items())
        made += delimited(2, span + varint(16 << 3 | 5) + struct.pack("<I", 256))
    resource = delimited(1, delimited(1, pair("service.name", service)))
    return delimited(1, resource + delimited(2, made))


ENCODINGS = {"application/json": as_json, "application/x-protobuf": as_protobuf}


@pytest.fixture(scope="module")
def receiver():
    told = []
    sock = listen("127.0.0.1", 0)
    port = sock.getsockname()[1]
    made = OtlpReceiver(sock, told.append)
    made.start()
    with httpx.Client(base_url=f"http://127.0.0.1:{port}") as client:
        until = time.monotonic() + 10
        while True:
            try:
                client.get("/")
                break
            except httpx.TransportError:
                assert time.monotonic() < until
        yield client, told, made
    made.stop()
    assert not made.is_alive


@pytest.mark.parametrize("kind", ENCODINGS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_span_of_a_request_is_its_record(receiver, kind, packed):
    client, told, _ = receiver
    told.clear()
    body = ENCODINGS[kind](("llm_request", START, START + 900_000_000, ATTRIBUTES), ("other", START, START, {}))
    headers = {"content-type": kind} | ({"content-encoding": "gzip"} if packed else {})
    answer = client.post("/v1/traces", content=gzip.compress(body) if packed else body, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
    assert answer.content == (b"{}" if "json" in kind else b"")
    (event,) = told
    assert event["request"] == {
        "request_id": "cmpl-1-0",
        "engine_id": "vllm-a",
        "tenant_id": "unknown",
        "tier": "standard",
        "model": "",
        "arrived_ns": START,
        "scheduled_ns": START + 125_000_000,
        "first_token_ns": START + 250_000_000,
        "finished_ns": START + 500_000_000,
        "prompt_tokens": 11,
        "cached_tokens": None,
        "output_tokens": 3,
        "reasoning_tokens": None,
        "max_tokens": 3,
        "finish_reason": "length",
        "preemptions": None,
        "prefix_ids": None,
    }


@pytest.mark.parametrize("kind", ENCODINGS)
def test_a_part_may_be_of_no_use(receiver, kind):
    client, told, made = receiver
    told.clear()
    before = made.rejected
    nameless = {key: value for key, value in ATTRIBUTES.items() if key != "gen_ai.request.id"}
    body = ENCODINGS[kind](*(("llm_request", START, START, each) for each in (ATTRIBUTES, nameless)))
    answer = client.post("/v1/traces", content=body, headers={"content-type": kind})
    assert answer.status_code == 200
    assert (len(told), made.rejected - before) == (1, 1)
    if "json" in kind:
        assert answer.json()["partialSuccess"]["rejectedSpans"] == "1"
    else:
        assert answer.content.startswith(b"\x0a") and b"\x08\x01" in answer.content


@pytest.mark.parametrize(
    ("status", "path", "headers", "body"),
    [
        (400, "/v1/traces", {"content-type": "application/json"}, b"{"),
        (400, "/v1/traces", {"content-type": "application/json"}, b"[]"),
        (400, "/v1/traces", {"content-type": "application/x-protobuf"}, b"\x0a\xff"),
        (400, "/v1/traces", {"content-type": "application/json", "content-encoding": "gzip"}, b"no gzip"),
        (
            400,
            "/v1/traces",
            {"content-type": "application/json", "content-encoding": "gzip"},
            gzip.compress(b"{}")[:-4],
        ),
        (413, "/v1/traces", {"content-type": "application/json"}, b" " * (MOST_BYTES + 1)),
        (
            413,
            "/v1/traces",
            {"content-type": "application/json", "content-encoding": "gzip"},
            gzip.compress(b" " * (MOST_BYTES + 1), 1),
        ),
        (415, "/v1/traces", {"content-type": "text/plain"}, b"x"),
        (415, "/v1/traces", {"content-type": "application/json", "content-encoding": "br"}, b"x"),
        (404, "/v1/metrics", {"content-type": "application/json"}, b"{}"),
    ],
    ids=range(10),
)
def test_what_is_wrong_is_refused(receiver, status, path, headers, body):
    client, told, _ = receiver
    told.clear()
    answer = client.post(path, content=body, headers=headers)
    assert answer.status_code == status
    assert not told
    assert client.get("/v1/traces").status_code == 405


def test_a_receiver_without_room_sends_them_back_later():
    sock = listen("127.0.0.1", 0)
    made = OtlpReceiver(sock, [].append, accepts=lambda: False)
    made.start()
    url = f"http://127.0.0.1:{sock.getsockname()[1]}/v1/traces"
    answer = httpx.post(url, content=b"{}", headers={"content-type": "application/json"})
    made.stop()
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


@pytest.mark.parametrize(
    ("service", "engine", "named"),
    [("vllm-a", "e", "vllm-a"), ("unknown_service:python3", "e", "e"), ("unknown_service", None, "unknown_service")],
)
def test_the_engine_is_the_service_if_it_has_a_name(service, engine, named):
    (span,) = from_json(as_json(("llm_request", START, START, ATTRIBUTES), service=service))
    assert request_of(span, engine).engine_id == named


def test_vllms_own_spans_are_read(shared):
    lines = (shared / "data/vllm/otlp_spans.jsonl").read_bytes().splitlines()
    spans = [span for line in lines for span in from_json(line) if span.name == "llm_request"]
    assert len(spans) == 13
    assert all(span.attributes["gen_ai.usage.prompt_tokens"] > 0 for span in spans)
    same = [(span.name, span.start_ns, span.end_ns, dict(span.attributes)) for span in spans]
    again = from_protobuf(as_protobuf(*same, service="s"))
    assert [span[:4] for span in again] == [span[:4] for span in spans]


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(body):
    with suppress(ValueError):
        from_protobuf(body)
