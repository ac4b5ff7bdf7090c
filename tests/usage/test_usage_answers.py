"""What answers of every kind say about tokens, from real ones and from the troubles of other tools."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farebox.collector.usage.answers import usage_of
from farebox.collector.usage.ends import finish_of, finish_of_status
from farebox.collector.usage.tally import Tally
from farebox.collector.usage.usage import Usage

CASES = Path(__file__).resolve().parents[1] / "cases"


def read_case(name):
    return [json.loads(line) for line in (CASES / name).read_text().splitlines()]


def counts(usage):
    return usage[:4]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}, (7, None, 3, None)),
        ({"usage": {"prompt_tokens": 7, "completion_tokens": 3, "prompt_cache_hit_tokens": 5}}, (7, 5, 3, None)),
        (
            {
                "type": "response.completed",
                "response": {
                    "usage": {
                        "input_tokens": 20,
                        "input_tokens_details": {"cached_tokens": 16},
                        "output_tokens": 9,
                        "output_tokens_details": {"reasoning_tokens": 4},
                    }
                },
            },
            (20, 16, 9, 4),
        ),
        (
            {
                "type": "message_start",
                "message": {
                    "usage": {
                        "input_tokens": 10,
                        "cache_read_input_tokens": 200,
                        "cache_creation_input_tokens": 30,
                        "output_tokens": 1,
                    }
                },
            },
            (240, 200, 1, None),
        ),
        ({"type": "message_delta", "usage": {"output_tokens": 15}}, (None, None, 15, None)),
        ({"tokens_predicted": 2, "tokens_evaluated": 5}, (5, None, 2, None)),
        ({"timings": {"prompt_n": 0, "cache_n": 5, "predicted_n": 0}}, (5, 5, 0, None)),
        ({"done": True, "prompt_eval_count": 26, "eval_count": 259}, (26, None, 259, None)),
        ({"done": True, "eval_count": 259}, (None, None, 259, None)),
        ({"usage": {"prompt_tokens": 5, "total_tokens": 5}}, (5, None, None, None)),
        ({"usage": None}, (None, None, None, None)),
        ({"usage": {"prompt_tokens": -1, "completion_tokens": "3"}}, (None, None, None, None)),
        ({"usage": {"prompt_tokens": True, "completion_tokens": 3.0}}, (None, None, 3, None)),
        ({"usage": [1], "timings": 4, "metrics": "no"}, (None, None, None, None)),
    ],
)
def test_every_dialect_is_read_by_its_own_convention(body, told):
    assert counts(usage_of(body)) == told


def test_times_are_nanoseconds_whatever_the_sender_counts_in():
    ollama = {"done": True, "eval_count": 290, "eval_duration": 4_709_213_000, "prompt_eval_duration": 130_079_000}
    assert usage_of(ollama).decode_ns == 4_709_213_000
    assert usage_of({"timings": {"predicted_n": 3, "predicted_ms": 1171.69}}).decode_ns == 1_171_690_000
    vllm = usage_of({"usage": None, "metrics": {"queue_time_ms": 0.177957, "generation_time_ms": 82.462654}})
    assert (vllm.queue_ns, vllm.decode_ns) == (177_957, 82_462_654)


def test_c03_an_unknown_cache_count_is_not_zero():
    told = [usage_of(event).cached_tokens for event in read_case("C03.events.jsonl")]
    assert told == [None, 0, 900]


def test_c10_reasoning_counts_once_inside_or_beside_the_completion():
    inside, beside = (
        usage_of(event | event["usage"] if "promptTokenCount" in event["usage"] else event) for event in _c10()
    )
    assert counts(inside) == (324, None, 1360, 495)
    assert counts(beside)[2:] == (1360, 495)
    grok = {"prompt_tokens": 324, "completion_tokens": 865, "total_tokens": 1684}
    assert counts(usage_of({"usage": grok | {"completion_tokens_details": {"reasoning_tokens": 495}}})) == counts(
        inside
    )
    assert usage_of({"usageMetadata": _c10()[1]["usage"]})[:3] == (324, None, 1360)
    assert (inside.prompt_tokens * 2 + inside.output_tokens * 12, 324 * 2 + beside.output_tokens * 12) == (
        16_968,
        16_968,
    )


def _c10():
    return read_case("C10.events.jsonl")


def test_c30_more_cached_than_prompt_is_kept_and_flagged():
    (event,) = read_case("C30.events.jsonl")
    usage = usage_of(event)
    assert (usage.prompt_tokens, usage.cached_tokens, usage.is_odd) == (60_000, 123_000, True)


@pytest.mark.parametrize(("name", "last"), [("C07.events.jsonl", (6000, 5)), ("C08.events.jsonl", (1000, 1))])
def test_c07_c08_running_totals_are_not_summed(name, last):
    tally = Tally()
    taken = []
    for event in read_case(name):
        tally.see(event)
        taken.append(tally.take())
    assert (tally.usage.prompt_tokens, tally.usage.output_tokens) == last
    assert tuple(sum(each[i] for each in taken) for i in (0, 2)) == last


def test_c04_c06_the_engines_own_counts_stand_in_for_missing_usage():
    tally = Tally()
    for event in read_case("C06.events.jsonl"):
        if "usage" in event:
            tally.see(event)
        else:
            tally.tell("engine", Usage(event.get("prompt_tokens"), None, event.get("output_tokens")))
    assert (counts(tally.usage), tally.source) == ((24, None, 58, None), "engine")
    hung_up = Tally()
    for event in read_case("C04.events.jsonl"):
        hung_up.tell("engine", Usage(event.get("prompt_tokens"), None, event.get("output_tokens")))
    assert counts(hung_up.take(final=True)) == (45, None, 511, None)


def test_c06_what_nobody_tells_is_unknown():
    tally = Tally()
    tally.see({"usage": None})
    assert (tally.usage, tally.source) == (Usage(), None)


snapshots = st.lists(st.tuples(*[st.none() | st.integers(0, 10**6)] * 3), max_size=8)


@given(snapshots, st.tuples(*[st.none() | st.integers(0, 10**6)] * 3))
def test_what_is_taken_adds_up_to_what_counts_in_the_end(told, counted):
    tally = Tally()
    taken = []
    for prompt, cached, output in told:
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        tally.see({"usage": usage})
        taken.append(tally.take())
    tally.tell("counted", Usage(*counted))
    taken.append(tally.take(final=True))
    assert all((count or 0) >= 0 for each in taken for count in each)
    for column in range(3):
        total = sum(each[column] or 0 for each in taken)
        assert total == (tally.usage[column] or 0)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"choices": [{"finish_reason": None}]}, None),
        ({"choices": [{"finish_reason": "tool_calls"}]}, "stop"),
        ({"choices": [{"finish_reason": "stop"}, {"finish_reason": "length"}]}, "length"),
        ({"choices": [{"finish_reason": "abort"}]}, "abort"),
        ({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}, "length"),
        ({"stop": True, "stop_type": "limit"}, "length"),
        ({"stop": False, "content": "x"}, None),
        ({"done": True, "done_reason": "stop"}, "stop"),
        ({"response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}}, "length"),
        ({"response": {"status": "in_progress"}}, None),
        ({"object": "response", "status": "failed"}, "error"),
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, "length"),
        ({"choices": "no"}, None),
    ],
)
def test_ends_have_one_word(body, reason):
    assert finish_of(body) == reason


def test_c22_refusals_are_told_from_failures():
    told = [finish_of_status(status) for status in (200, 400, 401, 429, 503, 500, 502)]
    assert told == [None, "rejected", "rejected", "rejected", "rejected", "error", "error"]


def events_of(text):
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("llamacpp/llamacpp_completion_stream.sse", (5, 0, 3, None)),
        ("llamacpp/llamacpp_v1_chat_stream.sse", (26, 21, 4, None)),
        ("vllm/stream_usage.txt", (15, 0, 2, None)),
        ("vllm/stream_force_usage_metrics.txt", (10, 0, 3, None)),
    ],
)
def test_captured_streams_end_with_what_the_server_counted(shared, name, told):
    tally = Tally()
    for event in events_of((shared / "data" / name).read_text()):
        tally.see(event)
    assert counts(tally.usage) == told
    assert tally.source == "api"


@pytest.mark.parametrize(
    ("name", "told", "reason"),
    [
        ("llamacpp_completion.json", (5, 1, 3, None), "length"),
        ("llamacpp_v1_chat.json", (26, 0, 12, None), "length"),
        ("llamacpp_v1_completions.json", (6, 0, 12, None), "length"),
    ],
)
def test_captured_answers_of_llamacpp(shared, name, told, reason):
    body = json.loads((shared / "data/llamacpp" / name).read_text())
    assert (counts(usage_of(body)), finish_of(body)) == (told, reason)


def test_captured_answers_of_vllm_tell_cached_tokens(shared):
    lines = (shared / "data/vllm/cached_usage.txt").read_text().splitlines()
    assert [counts(usage_of(json.loads(line))) for line in lines] == [(360, 0, 2, None), (360, 256, 2, None)]
