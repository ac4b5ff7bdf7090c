"""A scraped engine on the screen: what its page says, n/a and why, and no figure that nobody told."""

import json

import pytest

from farebox.events import SOURCE_STATES, Interval, SourceState
from farebox.tui.feed import Feed
from farebox.tui.plain import plain_snapshot, to_json
from farebox.tui.snapshot import Snapshot

S = 1_000_000_000
MS = 1_000_000
START = 1_767_225_600 * S
INTERVAL = Interval("vllm-0", "run-1", 0, START, 5 * S, 1, 0, (810_000, 220_000), 50, 0, 400, 3, 0, None, None, None)
MISSING = {"ttft": "llama.cpp has no latency histograms", "preemptions": "llama.cpp does not preempt"}


@pytest.fixture
def scraped(make):
    """A store with one busy pseudo-step per interval that has tokens, an idle one for each that has none."""

    def told_of(*intervals: Interval, **run):
        told = make.store()
        for seq, given in enumerate(intervals):
            interval = given._replace(step_seq=seq, started_ns=START + seq * 5 * S)
            end = interval.started_ns + interval.duration_ns
            busy = interval.duration_ns if interval.output_tokens else 0
            step = make.step(
                seq, end - busy, busy, idle_before_ns=interval.duration_ns - busy, basis="interval",
                running=interval.running or 0, output_tokens=interval.output_tokens or 0, kv_blocks_used=None,
                kv_blocks_total=None,
            )  # fmt: skip
            told.step_list.append(step)
            told.share_list += [make.share(step, "unknown", output_tokens=step.output_tokens)] if busy else []
            told.interval_list.append(interval)
        end = START + len(intervals) * 5 * S
        told.run_list = [make.run(clock="real", mode="vLLM", step_model=None, heartbeat_ns=end, **run)]
        return told

    return told_of


def look(told) -> Snapshot:
    now = told.run_list[0].heartbeat_ns
    snapshot = Feed(told, wall_ns=lambda: now, steady_ns=lambda: 0).poll()
    assert snapshot is not None
    return snapshot


def test_the_page_speaks_where_steps_would(scraped):
    snapshot = look(scraped(INTERVAL, INTERVAL._replace(running=2), max_num_seqs=None))
    assert (snapshot.engine.state, snapshot.engine.every_ns) == ("live", 5 * S)
    assert (snapshot.riding, snapshot.seats, snapshot.waiting, snapshot.finished) == (2, None, 0, 6)
    assert snapshot.kv_part == 0.81
    assert (snapshot.steps, snapshot.alone_ns, snapshot.accounts.unobserved) == (0, None, 0)
    text = plain_snapshot(snapshot)
    assert "81 % (81, 22)" in text
    assert "2 on board" in text
    assert "n/a its page tells no steps" in text


def test_what_a_page_lacks_is_named(scraped):
    missing = json.dumps(MISSING)
    snapshot = look(scraped(INTERVAL._replace(preemptions=None, kv_ppm=None, missing=missing)))
    text = plain_snapshot(snapshot, width=120)
    assert "n/a llama.cpp does not preempt" in text
    assert "n/a llama.cpp has no latency" in text
    assert snapshot.preemptions is None
    assert json.loads(to_json(snapshot))["missing"] == MISSING


def test_tokens_that_are_not_told_are_not_nothing(scraped):
    missing = json.dumps({"prompt_tokens": "not on this page", "cached_tokens": "not on this page"})
    text = plain_snapshot(look(scraped(INTERVAL._replace(missing=missing))))
    assert "in –  cached –  out 80" in text


def test_an_engine_that_tells_its_steps_is_believed_before_its_page(scraped):
    told = scraped(INTERVAL)
    told.step_list = [step._replace(basis="step") for step in told.step_list]
    snapshot = look(told)
    assert (snapshot.engine.every_ns, snapshot.steps) == (None, 1)


def test_percentiles_of_histograms_and_what_lies_beyond_them(scraped):
    histograms = json.dumps({"ttft": [[0.1, 0], [0.5, 10], [None, 1]], "itl": [[0.01, 100]]})
    snapshot = look(scraped(INTERVAL._replace(histograms=histograms), INTERVAL._replace(histograms=histograms)))
    assert snapshot.ttft is not None
    assert (snapshot.ttft.p50_ns, snapshot.ttft.p99_ns, snapshot.ttft.requests) == (320 * MS, 500 * MS, 22)
    assert (snapshot.ttft.p50_is_more, snapshot.ttft.p99_is_more) == (False, True)
    assert "p50 320  p99 >500 ms" in plain_snapshot(snapshot)


def test_an_idle_interval_is_idle_once(scraped):
    snapshot = look(scraped(INTERVAL, *[INTERVAL._replace(output_tokens=0, running=0)] * 2))
    assert (snapshot.engine.state, snapshot.riding) == ("idle", 0)
    assert (snapshot.accounts.idle, snapshot.accounts.unobserved) == (10 * S, 0)
    assert snapshot.accounts.total == 15 * S


def test_limits_by_memory_and_by_too_few_requests(scraped):  # G01
    full = INTERVAL._replace(running=247, waiting=740, kv_ppm=(997_000,))
    assert "KV cache is full: riders wait for memory" in plain_snapshot(look(scraped(full)))
    put_off = full._replace(preemptions=108)  # G05: it ranks above the queue
    assert "riders are put off" in plain_snapshot(look(scraped(put_off)))
    assert "not enough parallel requests" in plain_snapshot(look(scraped(INTERVAL._replace(kv_ppm=(8_000,)))))


def test_a_source_that_is_down_is_told(scraped):
    told = scraped(INTERVAL)
    down = SourceState("vllm-0", "vllm", "down", START + 6 * S, START + 6 * S, "nobody listens there")
    told.settings_of[SOURCE_STATES] = [down]
    assert "vllm-0 down since 00:00:06: nobody listens there" in plain_snapshot(look(told))


def test_tokens_are_told_where_nobody_knows_how_busy_the_engine_was(scraped):
    unknown = INTERVAL._replace(running=None, missing=json.dumps({"running": "not on this page"}))
    told = scraped(unknown)
    step = told.step_list[0]
    told.step_list[0] = step._replace(started_ns=START + 5 * S - 1, duration_ns=0, idle_before_ns=0)
    told.share_list = [told.share_list[0]._replace(started_ns=START + 5 * S - 1, gpu_ns=0)]
    snapshot = look(told)
    assert (snapshot.wall_ns, snapshot.output_tokens, snapshot.busy_ns, snapshot.per_1k) == (5 * S, 400, 0, None)
