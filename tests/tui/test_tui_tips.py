"""What stands in the store beside events: the collector's alerts, and advice."""

from __future__ import annotations

import pytest

from farebox.events import ADVICE, ALERTS, SOURCE_STATES, Advice, Alert, SourceState
from farebox.tui.state import State


def make_advice(rank: int, **changes) -> Advice:
    command = f"farebox whatif STORE --max-num-seqs {64 * rank}"
    texts = ("max_num_seqs", f"{64 * rank} seats [bold]instead of 32", "", "", "high", command)
    return Advice(rank, *texts, "USD", 300_000_000 // rank, 10**15, 0, 0, 0)._replace(**changes)


@pytest.fixture
def polled(make):
    """The snapshot of a store to which something was done."""

    def poll(store, **settings):
        store.run_list = [make.run(heartbeat_ns=make.START + make.S)]
        store.settings_of |= {ALERTS: settings.get("alerts", []), SOURCE_STATES: settings.get("sources", [])}
        store.settings_of[ADVICE] = settings.get("advice", [])
        return make.feed(store).poll()

    return poll


def test_an_alert_of_the_collector_is_told_with_since_and_rule(polled, store, make):
    row = Alert("unobserved", "vllm-7", make.START, None, "12% of the last 10 min of vllm-7 is unobserved")
    (found,) = [a for a in polled(store, alerts=[row]).alerts if a.key == "unobserved:vllm-7"]
    assert found.title == row.text
    assert "since 00:00:00 UTC" in found.cause
    assert "unobserved" in found.cause


def test_what_is_over_is_not_told(polled, store, make):
    row = Alert("idle", "vllm-7", make.START, make.START + make.S, "90% is idle")
    assert not any(a.key.startswith("idle") for a in polled(store, alerts=[row]).alerts)


def test_nothing_is_told_twice(polled, store, make):
    state = SourceState("gpu-node-1", "nvml", "down", make.START, make.START, "driver gone")
    row = Alert("source-down", "gpu-node-1", make.START, None, "gpu-node-1 cannot be read: driver gone")
    other = row._replace(about="proxy-2")
    keys = [a.key for a in polled(store, alerts=[row, other], sources=[state]).alerts]
    assert [key for key in keys if "source" in key] == ["source:gpu-node-1", "source-down:proxy-2"]


def test_the_three_best_are_shown_by_what_they_save(polled, store):
    tips = polled(store, advice=[make_advice(rank) for rank in (3, 1, 4, 2)]).tips
    assert [tip.saved_micro for tip in tips] == [300_000_000, 150_000_000, 100_000_000]


@pytest.mark.parametrize("page", ["alerts", "bill"])
async def test_pages_show_the_saving_and_the_command(make, store, page):
    store.run_list = [make.run(heartbeat_ns=make.START + make.S)]
    store.settings_of[ADVICE] = [make_advice(1), make_advice(2, saved_micro=None, currency=None)]
    app = make.app(store, state=State(page))
    async with app.run_test(size=(80, 24)) as pilot:
        await make.settled(pilot, lambda a: a.screen.snapshot is not None)
        told = "\n".join("".join(text for text, _ in line) for line in app.screen.query_one("Tips").lines(76, 9))
    assert "64 seats [bold]instead of 32" in told
    assert "saves $300.00/month" in told
    assert "farebox whatif STORE --max-num-seqs 128" in told
    assert "GPU/month" in told
