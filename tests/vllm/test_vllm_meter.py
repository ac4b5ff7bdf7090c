"""The meter tells exactly what was scheduled: it is compared, step by step, with a list made row by row."""

import time
from collections import Counter
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries
from vllm_drive import Ask, Metered, sums, tell
from vllm_fake import FakeRequest

ASKS = st.lists(
    st.builds(
        Ask,
        at=st.integers(0, 25),
        tenant=st.sampled_from(["acme", "globex", "initech"]),
        prompt=st.integers(1, 60),
        max_tokens=st.integers(1, 25),
        stop_at=st.none() | st.integers(1, 20),
        cached=st.sampled_from([0, 0, 8, 16]),
        abort_at=st.none() | st.integers(0, 50),
    ),
    min_size=1,
    max_size=12,
)
ENGINES = st.fixed_dictionaries(
    {
        "budget": st.sampled_from([8, 32, 100]),
        "seats": st.sampled_from([2, 8]),
        "blocks": st.sampled_from([30, 40, 200]),
        "depth": st.sampled_from([1, 2]),
        "drafts": st.sampled_from([0, 0, 2]),
        "stages": st.sampled_from([1, 1, 2]),
        "seed": st.integers(0, 99),
    }
)
PREEMPTED = [Ask(number // 2, "ab"[number % 2], 30, 25) for number in range(6)]


def total(events, name):
    return sum(event["step"][name] for event in events)


@tries(60)
@given(ASKS, ENGINES)
def test_cells_are_what_was_computed(asks, engine):
    metered = Metered(asks, **engine).run()
    events = tell(metered, "step")
    assert [sums(event) for event in events] == [+cells for cells in metered.naive]
    assert metered.guard.faults == 0


@tries(25)
@given(ASKS, ENGINES)
def test_a_step_is_the_sum_of_its_cells_and_time_has_no_gaps(asks, engine):
    metered = Metered(asks, **engine).run()
    before_ns = None
    for number, event in enumerate(tell(metered, "step")):
        step, cells = event["step"], event["cells"]
        assert step["step_seq"] == number and step["duration_ns"] > 0 and step["idle_before_ns"] >= 0
        assert before_ns is None or before_ns + step["idle_before_ns"] == step["started_ns"]
        before_ns = step["started_ns"] + step["duration_ns"]
        assert step["prefill_tokens"] + step["decode_tokens"] == sum(cell["rows"] for cell in cells)
        assert step["output_tokens"] == sum(cell["output_tokens"] for cell in cells)
        assert step["recomputed_tokens"] == sum(cell["rows"] for cell in cells if cell["account"] == "overhead")
        assert step["kv_blocks_used"] * step["duration_ns"] == sum(cell["kv_block_ns"] for cell in cells)
        keys = [(cell["account"], cell["tenant_id"], cell["tier"], cell["phase"]) for cell in cells]
        assert keys == sorted(set(keys))


@tries(25)
@given(ASKS, ENGINES)
def test_every_request_is_told_once_with_its_times_in_order(asks, engine):
    metered = Metered(asks, **engine).run()
    requests = [event["request"] for event in tell(metered, "request")]
    assert sorted(request["request_id"] for request in requests) == sorted(f"r{number}" for number in range(len(asks)))
    for request in requests:
        ask = asks[int(request["request_id"][1:])]
        assert (request["tenant_id"], request["prompt_tokens"], request["max_tokens"]) == (
            ask.tenant, ask.prompt, ask.max_tokens,
        )  # fmt: skip
        times = [request[name] for name in ("arrived_ns", "scheduled_ns", "first_token_ns", "finished_ns")]
        known = [instant for instant in times if instant is not None]
        assert known == sorted(known)
        assert (request["first_token_ns"] is None) == (request["output_tokens"] == 0)
        if request["finish_reason"] != "abort":
            assert request["finish_reason"] == ("stop" if request["output_tokens"] == ask.stop_at else "length")
    by_tenant = Counter[str]()
    for request in requests:
        by_tenant[request["tenant_id"]] += request["output_tokens"]
    in_cells = Counter[str]()
    for event in tell(metered, "step"):
        for cell in event["cells"]:
            in_cells[cell["tenant_id"]] += cell["output_tokens"]
    assert +by_tenant == +in_cells


def test_the_identity_of_prompt_output_and_recomputation():
    metered = Metered(PREEMPTED, budget=32, seats=6, blocks=40).run()
    events = tell(metered, "step")
    again = total(events, "recomputed_tokens")
    assert total(events, "preemptions") > 0 and again > 0
    assert total(events, "prefill_tokens") - again == sum(ask.prompt for ask in PREEMPTED)
    assert total(events, "decode_tokens") == sum(ask.max_tokens - 1 for ask in PREEMPTED)  # the last is never computed
    assert total(events, "output_tokens") == sum(ask.max_tokens for ask in PREEMPTED)


def test_hits_are_cached_tokens_once_and_not_again_after_a_preemption():
    asks = [ask._replace(cached=16) for ask in PREEMPTED]
    metered = Metered(asks, budget=32, seats=6, blocks=40).run()
    events = tell(metered, "step")
    assert total(events, "preemptions") > 0
    assert total(events, "cached_tokens") == 16 * len(asks)
    assert total(events, "prefill_tokens") - total(events, "recomputed_tokens") == 14 * len(asks)
    assert {event["request"]["cached_tokens"] for event in tell(metered, "request")} == {16}


def test_steady_decoders_are_not_looked_at_one_by_one():
    metered = Metered([Ask(0, f"t{number % 3}", 10, 200) for number in range(8)], budget=100, blocks=1000).run()
    trips = [seen for seen in metered.queued if hasattr(seen, "decodes")]
    assert sum(bool(trip.chunks) for trip in trips) == 1
    assert {len(trip.decodes) for trip in trips[1:]} == {3}


@pytest.mark.parametrize("depth", [1, 2])
def test_overlapping_steps_do_not_count_time_twice(depth):
    metered = Metered([Ask(0, "acme", 20, 50) for _ in range(4)], depth=depth).run()
    events = tell(metered, "step")
    busy_ns, idle_ns = total(events, "duration_ns"), total(events, "idle_before_ns")
    assert busy_ns + idle_ns == metered.meter.ended_ns - metered.began_ns
    assert depth == 1 or idle_ns < busy_ns // 10, "the next batch waits while one is computed"


def test_a_worked_request():
    """A prompt of 5 with 2 hits, in chunks of 2, then 3 tokens: rows, positions read and tokens, step by step."""
    metered = Metered([Ask(0, "acme", 5, 3, cached=2)], budget=2).run()
    events = tell(metered, "step")
    names = ("phase", "rows", "attended", "output_tokens", "cached_tokens")
    assert [[cell[name] for name in names] for event in events for cell in event["cells"]] == [
        ["prefill", 2, 3 + 4, 0, 2],
        ["prefill", 1, 5, 1, 0],
        ["decode", 1, 6, 1, 0],
        ["decode", 1, 7, 1, 0],
    ]
    assert [event["step"]["kv_blocks_used"] for event in events] == [1, 2, 2, 2], "blocks of 4 tokens"


def test_rejected_drafts_are_counted_and_not_recomputed_rows():
    metered = Metered([Ask(0, "acme", 20, 60), Ask(1, "globex", 9, 60)], drafts=3).run()
    events = tell(metered, "step")
    assert total(events, "rejected_tokens") > 0 and total(events, "recomputed_tokens") == 0
    # A decode row gave a token, or was a draft thrown away, or was cut off at the end; the first token is the prompt's.
    cut_off = total(events, "decode_tokens") - total(events, "rejected_tokens") - (total(events, "output_tokens") - 2)
    assert 0 <= cut_off <= 2 * 3


@pytest.mark.parametrize("tier", ["fast", "batch", "nonsense"])
def test_tenant_and_tier_come_with_the_request_and_vllm_gets_its_headers_back(tier):
    metered = Metered([Ask(0, "acme", 5, 2)])
    metered.come(0)
    request = metered.scheduler.requests["r0"]
    assert request.trace_headers == {"traceparent": "00-1"}
    metered = Metered([Ask(0, "acme", 5, 2)], tier=tier).run()
    assert {event["request"]["tier"] for event in tell(metered, "request")} == {
        tier if tier != "nonsense" else "standard"
    }


@pytest.mark.parametrize(("ago_s", "expected_s"), [(0.3, 0.3), (-5.0, 0.0), (86_400.0, 0.0)])
def test_a_request_arrived_when_the_api_server_took_it_if_its_clock_can_be_believed(ago_s, expected_s):
    metered = Metered([])
    request = FakeRequest("r0", 5, 5)
    request.arrival_time = time.time() - ago_s
    metered.scheduler.add_request(request)
    arrived_ns = metered.meter._rides["r0"].arrived_ns
    assert (metered.clock.now_ns - arrived_ns) / 1e9 == pytest.approx(expected_s, abs=0.1)


def test_the_model_of_a_request_is_its_adapter():
    metered = Metered([Ask(0, "acme", 5, 2), Ask(0, "acme", 5, 2)])
    metered.come(0)
    metered.scheduler.requests["r1"].lora_request = SimpleNamespace(lora_name="sql-lora")
    while metered.scheduler.requests:
        metered.step()
    assert [event["request"]["model"] for event in tell(metered, "request")] == ["tiny", "sql-lora"]


def test_a_beat_never_promises_what_a_later_step_breaks():
    metered = Metered(PREEMPTED, depth=2, budget=32, seats=6, blocks=40)
    promised: list[tuple[int, int]] = []
    schedule = metered.scheduler.schedule

    def asked(*args):
        promised.append((metered.meter.steps, metered.meter.told_ns()))
        out = schedule(*args)
        promised.append((metered.meter.steps, metered.meter.told_ns()))
        return out

    metered.scheduler.schedule = asked
    metered.run()
    trips = [seen for seen in metered.queued if hasattr(seen, "decodes")]
    for steps, at_ns in promised:
        assert all(trip.started_ns >= at_ns for trip in trips[steps:])


def test_an_engine_that_ends_tells_who_was_on_board():
    metered = Metered([Ask(0, "acme", 20, 50), Ask(0, "globex", 20, 50)])
    metered.come(0)
    metered.step()
    metered.meter.abandon()
    told = [event["request"] for event in tell(metered, "request")]
    assert [(request["finish_reason"], request["output_tokens"]) for request in told] == [("abort", 1)] * 2
