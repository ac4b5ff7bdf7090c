"""Alerts: told once when something lasts, once when it is over, never lost to a webhook that is away."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from collect_process import until
from spooled_telling import MS, Teller, spool

from farebox.collector.alerts.watch import AlertWatch
from farebox.collector.alerts.webhook import Webhook
from farebox.collector.config.alerts import RuleConfig
from farebox.collector.totals import Totals
from farebox.events import ALERTS, BUDGET_STATES, GPU_SAMPLES, SOURCE_STATES, Alert, BudgetState, GpuSample, SourceState
from farebox.storage.live import LiveReader


@pytest.fixture
def watching(collector):
    """A watch on a store with a clock that the test moves; what was sent."""
    with LiveReader(collector.store.path) as reader:
        totals, now, sent = Totals(reader), [1000.0], []

        def watch(*rules):
            made = AlertWatch(rules, collector.store, reader, totals, sent.append, lambda: now[0])

            def after(seconds):
                for _ in range(int(seconds / 5)):
                    now[0] += 5
                    made.turn()
                return [(alert.rule, alert.about, alert.ended_ns is None) for alert in sent]

            made.turn()
            return after

        yield watch


def test_a_source_that_is_down_for_long_enough_and_comes_back(collector, watching):
    after = watching(RuleConfig(kind="source-down", seconds=60))
    collector.store.put(SOURCE_STATES, SourceState("gpu7", "scrape", "down", 5, 5, "refused"))
    assert after(30) == []
    assert after(60) == [("source-down", "gpu7", True)] == after(600)
    collector.store.put(SOURCE_STATES, SourceState("gpu7", "scrape", "up", 6, 6, None))
    assert after(30)[1:] == []
    assert after(60)[1:] == [("source-down", "gpu7", False)]
    [kept] = collector.store.settings(ALERTS)
    assert kept.ended_ns and "refused" in kept.text


def test_what_flickers_is_told_once(collector, watching):
    after = watching(RuleConfig(kind="source-down", seconds=0))
    for n in range(6):
        state = "down" if n % 2 == 0 else "up"
        collector.store.put(SOURCE_STATES, SourceState("a", "scrape", state, n, n, "x"))
        told = after(30)
    assert told == [("source-down", "a", True)]


def test_a_restart_neither_repeats_nor_forgets(collector, watching):
    collector.store.put(ALERTS, Alert("source-down", "a", 1, None, "a cannot be read"))
    collector.store.put(SOURCE_STATES, SourceState("a", "scrape", "down", 1, 1, "x"))
    after = watching(RuleConfig(kind="source-down", seconds=0))
    assert after(120) == []
    collector.store.put(SOURCE_STATES, SourceState("a", "scrape", "up", 2, 2, None))
    assert after(120) == [("source-down", "a", False)]


def test_idle_and_preemptions_are_seen_in_the_totals(collector, watching):
    rules = [RuleConfig(kind="idle", above=0.8, seconds=60), RuleConfig(kind="preemptions", above=1, seconds=60)]
    after = watching(*rules, RuleConfig(kind="idle", above=0, seconds=60, engine="another"))
    teller = Teller()
    busy = teller.step()
    busy["step"]["preemptions"] = 500
    spool(collector.root / "w", [teller.run(), busy, teller.beat(900 * MS)])
    collector.look()
    assert sorted(after(70))[:2] == [("idle", "chat", True), ("preemptions", "chat", True)]


@pytest.mark.parametrize(("load", "found"), [(100, [("spinning", "chat", True)]), (40, [])])
def test_gpus_that_are_busy_without_tokens(collector, watching, load, found):  # A19
    after = watching(RuleConfig(kind="spinning", above=0.5, seconds=60))
    teller, now_ns = Teller(), time.time_ns()
    spool(collector.root / "w", [teller.run(), teller.step(), teller.beat(900 * MS)])
    collector.look()
    [run] = collector.store.runs()
    polls = json.loads((Path(__file__).parents[1] / "cases/A19.nvml.json").read_text())["polls"]
    samples = [
        GpuSample(run.host, told["uuid"], now_ns, n, told["name"], None, "ok", load, *[None] * 11)
        for n, told in enumerate(polls[0]["devices"])
    ]
    assert [told["utilization"]["gpu"] for told in polls[0]["devices"]] == [100, 100]
    collector.store.append_samples(GPU_SAMPLES, GPU_SAMPLES.to_arrow(samples))
    assert after(70) == found


def test_budgets_and_a_full_cache(collector, watching):
    after = watching(RuleConfig(kind="budget"), RuleConfig(kind="kv-full", above=0.9, seconds=0))
    state = BudgetState("red", "2026-11", "UTC", "USD", 9, 1, None, 10, None, "2026-11-30", "within", None, 1)
    collector.store.put(BUDGET_STATES, state)
    teller = Teller(start_ns=time.time_ns())
    full = teller.step()
    full["step"] |= {"kv_blocks_used": 99, "kv_blocks_total": 100}
    spool(collector.root / "w", [teller.run(), full])
    collector.look()
    assert sorted(after(10)) == [("budget", "red 2026-11", True), ("kv-full", "chat", True)]


def test_a_webhook_that_is_away_gets_it_later_and_no_secret_is_told(monkeypatch):
    got, answers, said = [], [500, 200], []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(
                (self.headers["Authorization"], json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            )
            self.send_response(answers.pop(0) if answers else 200)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr("farebox.collector.alerts.webhook.LONGEST_S", 0.1)
    with Webhook(f"http://127.0.0.1:{server.server_port}/secret", "key", said.append) as hook:
        hook.send(Alert("idle", "chat", 5, None, "90% idle"))
        until(lambda: len(got) == 2)
    server.shutdown()
    server.server_close()
    assert got[0] == got[1] and got[0][0] == "Bearer key"
    assert got[0][1]["status"] == "firing" and got[0][1]["text"] == "firing: 90% idle" and got[0][1]["about"] == "chat"
    assert "answers 500" in said[1] and not any("secret" in text or "key" in text for text in said)
