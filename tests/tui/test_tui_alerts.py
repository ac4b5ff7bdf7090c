"""Alerts: each case of an operator's question gets its cause and next step; quiet engines get none."""

from __future__ import annotations

import pytest

from farebox.events import BUDGET_STATES, PRICES, SOURCE_STATES, SourceState, TokenPrice


def alerts(make, store):
    """The alerts of a store, by key."""
    found = make.feed(store).poll().alerts
    assert all(alert.title and alert.cause and alert.step for alert in found)
    return {alert.key: alert for alert in found}


@pytest.fixture
def steady(make, store):
    """A minute of steps of 100 ms; `steady(running=…)` changes what every step says."""

    def fill(count=600, seqs=20, **changes):
        store.rate_list = [make.rate()]
        running = changes.pop("running", seqs)
        for seq in range(count):
            step = make.step(seq, make.START + seq * 100 * make.MS, 100 * make.MS, running=running, **changes)
            store.step_list.append(step._replace(decode_seqs=changes.get("decode_seqs", running)))
            store.share_list.append(make.share(step, seqs=seqs, rows=seqs))
        store.run_list = [make.run(heartbeat_ns=make.START + count * 100 * make.MS)]
        return store

    return fill


def test_a_well_filled_engine_has_nothing_to_tell(make, steady):
    assert alerts(make, steady()) == {}


def test_preemptions_stand_above_the_queue_and_tell_what_they_waste(make, steady):
    """G04 and G05: KV full, riders put off, requests waiting, rows computed twice."""
    store = steady(running=8, waiting=200, preemptions=1, recomputed_tokens=480, kv_blocks_used=1000)
    found = list(alerts(make, store).values())
    assert found[0].key == "preemption"
    assert "10/s" in found[0].cause
    assert "288,000 tokens were computed a second time" in found[0].cause
    assert "10,000 blocks, 19.5 GiB" in found[0].cause
    assert "kv" not in {alert.key for alert in found}


def test_no_counter_no_claim(make, steady):
    assert "preemption" not in alerts(make, steady(kv_blocks_used=1000))


def test_kv_memory_is_named_as_the_limit_when_seats_are_free(make, steady):
    """G01: hundreds wait while the KV cache is full."""
    found = alerts(make, steady(running=50, waiting=740, kv_blocks_used=997))
    assert "limited by KV memory: 740" in found["kv"].title
    assert "14 of 64 seats are free" in found["kv"].cause


def test_an_empty_kv_cache_is_no_fault(make, steady):
    """G02: only blocks of running requests count."""
    assert alerts(make, steady(kv_blocks_used=0)) == {}


def test_a_batch_of_one_needs_more_requests_not_more_gpus(make, steady):
    """G01b."""
    found = alerts(make, steady(seqs=1))["alone"]
    assert "batch of 1: not enough parallel requests" in found.title
    assert "another GPU would not help" in found.step


def test_a_long_prompt_that_starves_the_others_is_named_with_its_tenant(make, store):
    """G08: 60 decode steps of 17 ms, then 58 prompt steps of 390 ms in which nobody decodes."""
    at = make.START
    for seq in range(118):
        is_prompt = seq >= 60
        length = (390 if is_prompt else 17) * make.MS
        kind = {"prefill_seqs": 1, "decode_seqs": 0, "prefill_tokens": 3456} if is_prompt else {"decode_seqs": 1}
        step = make.step(seq, at, length, running=2 if is_prompt else 1, prefill_ns=0, **kind)
        store.step_list.append(step)
        phase = {"phase": "prefill", "rows": 3456, "output_tokens": 0} if is_prompt else {}
        store.share_list.append(make.share(step, "giant" if is_prompt else "victim", **phase))
        at += length
    store.run_list = [make.run(heartbeat_ns=at)]
    found = alerts(make, store)["prefill"]
    assert "22.6 s without a token" in found.title
    assert "giant's prompt of 200,448 tokens" in found.cause
    assert "58 steps in a row" in found.cause


def test_fast_mode_that_keeps_others_off_is_told_with_how_long_and_how_many(make, steady):
    found = alerts(make, steady(seqs=1, held_by="voice", waiting=9))["held:voice"]
    assert "voice in fast mode kept the batch at 1.0 riders" in found.title
    assert "up to 9 waited" in found.title
    assert "rode alone" in found.cause


def test_full_seats_with_kv_memory_left_want_more_seats(make, steady):
    found = alerts(make, steady(seqs=64, waiting=3, kv_blocks_used=300))["seats"]
    assert "every seat is taken and 3 wait" in found.title
    assert "max_num_seqs" in found.step


def test_idle_above_half_of_the_window(make, steady):
    store = steady(count=100)
    store.run_list = [make.run(heartbeat_ns=make.START + 60 * make.S)]
    assert "idle 83 %" in alerts(make, store)["idle"].title


def test_a_lost_engine_and_a_source_that_is_down(make, steady):
    store = steady()
    store.run_list = [store.run_list[0]._replace(clock="real")]
    why = "connection refused: is the server up?"
    store.settings_of[SOURCE_STATES] = [
        SourceState("node-7", "vllm", "down", make.START, make.START, why),
        SourceState("node-8", "vllm", "down", make.START, make.START, why),
        SourceState("node-8", "vllm", "up", make.START + 1, make.START + 2, None),
    ]
    from farebox.tui.feed import Feed

    late = make.START + 90 * make.S
    found = {a.key: a for a in Feed(store, wall_ns=lambda: late, steady_ns=lambda: 0).poll().alerts}
    assert "unobserved, not as idle" in found["lost"].cause
    assert found["source:node-7"].cause == why
    assert "source:node-8" not in found


def test_budgets_tokens_without_price_and_time_without_rate(make, steady):
    store = steady()
    store.settings_of[BUDGET_STATES] = [make.budget("5", "3", "4", state="above hard"), make.budget("1", None, "4")]
    store.settings_of[PRICES] = [TokenPrice("other", "standard", "USD", 1000, "1", None, "2", 0, None, "")]
    store.rate_list = []
    found = alerts(make, store)
    assert found["budget:Support:2026-01"].severity == "bad"
    assert "5.00 of 4.00 USD" in found["budget:Support:2026-01"].cause
    assert "tokens without price: llama-3-8b, standard" in found["price"].title
    assert "no rate for H100" in found["rate"].cause
