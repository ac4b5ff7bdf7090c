"""Chunks that are passed by unread: the client and the meter get what reading each of them would give."""

import json
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proxy_answers import CHAT, DONE, chunk, last, usage

from farebox.collector.proxy import reading
from farebox.collector.proxy.asked import asked_of
from farebox.collector.proxy.meter import Book, Meter, Rider, _has_token
from farebox.collector.proxy.reading import Reading
from farebox.collector.proxy.sse import Curtain, carries_output, data_of, is_midway, parsed

NASTY = ("", "a", "é\\", '"usage":{}', '"finish_reason":null', "finish_reason", "\n\n", '","usage":null}', "{", "}}")
texts = st.sampled_from(NASTY) | st.text(max_size=4)
totals = st.builds(usage, st.integers(0, 99), st.integers(0, 99)) | st.just(
    usage(5, 2, prompt_tokens_details={"cached_tokens": 1}, note='a "}" b')
)
deltas = st.sampled_from(("content", "reasoning_content", "refusal")).flatmap(
    lambda name: st.fixed_dictionaries({name: texts | st.none()}, optional={"role": st.just("assistant")})
) | st.just({"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]})
choices = st.fixed_dictionaries(
    {
        "index": st.integers(0, 1),
        "delta": deltas,
        "finish_reason": st.sampled_from((None, None, None, "stop", "length")),
    },
    optional={"logprobs": st.none(), "token_ids": st.none()},
)
bodies = st.fixed_dictionaries(
    {"id": texts, "choices": st.lists(choices, max_size=2)},
    optional={
        "usage": totals | st.none(),
        "timings": st.just({"prompt_n": 3, "predicted_ms": 0.5}),
        "metrics": st.just({"x": {"y": 1}}),
    },
)


def event_of(body, spaced=False):
    return b"data: " + json.dumps(body, separators=None if spaced else (",", ":")).encode() + b"\n\n"


@given(st.lists(bodies, max_size=4), st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_what_is_told_from_bytes_alone_is_what_reading_tells(stream, final, running, timings, spaced):
    by_bytes, by_reading = (Curtain(final=final, running=running, timings=timings) for _ in range(2))
    for body in stream:
        event = event_of(body, spaced)
        expected = by_reading.shown(event, body)
        if not is_midway(event):
            assert by_bytes.shown(event, body) == expected
            continue
        assert all(choice["finish_reason"] is None for choice in body["choices"]) and body["choices"]
        assert bool(carries_output(event)) == _has_token(body)
        shown = by_bytes.midway(event)
        assert (by_bytes.shown(event, body) if shown is None else shown) == expected


def read(monkeypatch, pieces, *, reads_all, ends=True):
    """What the client gets of a stream, and the records."""
    told, shown, now = [], [], iter(range(0, 10**12, 300_000_000))
    with monkeypatch.context() as patch:
        if reads_all:
            patch.setattr(reading, "is_midway", lambda _: False)
        meter = Meter(Book(told.append, "e", lambda: next(now)), Rider("r", "t", "standard", "m", None))
        answer = SimpleNamespace(status=200, headers=[(b"content-type", b"text/event-stream")])
        asked = asked_of("POST", "/v1/chat/completions", json.dumps(CHAT | {"stream": True}).encode())
        passing = Reading(answer, asked, meter, shown.append)
        for piece in pieces:
            passing.feed(piece)
        if ends:
            passing.finish()
        meter.end(passing.reason if ends else "abort")
    return b"".join(shown), told


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("has_totals", [True, False])
def test_a_stream_is_shown_and_recorded_as_if_each_chunk_were_read(monkeypatch, ends, has_totals):
    pieces = [chunk("", usage=usage(9, 0))]
    pieces += [chunk("x" if n % 5 else "", usage=usage(9, n) if has_totals else None) for n in range(1, 40)]
    pieces += [chunk("y", "length", usage=usage(9, 40)), last(9, 40), DONE] if ends else []
    by_bytes, by_reading = (read(monkeypatch, pieces, reads_all=all_, ends=ends) for all_ in (False, True))
    assert by_bytes == by_reading
    assert b'"usage"' not in by_bytes[0]
    (request,) = [event["request"] for event in by_bytes[1] if "request" in event]
    made = 40 if ends else 39 if has_totals else 32
    assert (request["output_tokens"], request["finish_reason"]) == (made, "length" if ends else "abort")
    assert sum(event["usage"]["output_tokens"] for event in by_bytes[1] if "usage" in event) == made


def test_usage_on_the_last_chunk_of_a_choice_is_the_clients_who_asked_for_it():
    midway, end = ({"choices": [{"delta": {"content": "x"}, "finish_reason": reason}]} for reason in (None, "stop"))
    events = [event_of(midway | {"usage": None}), event_of(end | {"usage": usage(5, 2)})]  # DeepSeek's way
    curtain = Curtain(final=True, running=False, timings=False)
    assert [curtain.shown(event, parsed(data_of(event))) for event in events] == events
