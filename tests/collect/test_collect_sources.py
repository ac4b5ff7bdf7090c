"""Sources on threads: one that fails backs off and recovers, and stops nobody else."""

import time
from types import SimpleNamespace

import pytest
from collect_process import until

from farebox.collector.backoff import Backoff
from farebox.collector.collect.daemon import Daemon
from farebox.collector.collect.source import Look
from farebox.collector.collect.thread import SourceThread
from farebox.collector.config.sources import NvmlConfig, ScrapeConfig
from farebox.events import SOURCE_STATES
from farebox.storage.store import create_store


class Fake:
    """Fails so often, then works; counts its looks."""

    kind, period_s = "scrape", 0.01

    def __init__(self, name="a", failures=0, error=None):
        self.name, self.failures, self.error = name, failures, error or RuntimeError("no")
        self.looks = self.closed = 0

    def look(self):
        self.looks += 1
        if self.looks <= self.failures:
            raise self.error
        return Look("up")

    def close(self):
        self.closed += 1


@pytest.fixture
def store(tmp_path):
    with create_store(tmp_path / "s") as made:
        yield made


def test_waits_double_up_to_five_minutes():
    backoff, waits = Backoff(), []
    for _ in range(11):
        backoff.failed(0)
        waits.append(backoff.wait_s(0))
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_a_source_that_fails_is_down_and_recovers(store, monkeypatch):
    monkeypatch.setattr(Backoff, "wait_s", lambda *_: 0.01)
    said = []
    thread = SourceThread(source := Fake(failures=3, error=OSError(5, "broken pipe")), store, said.append)
    thread.start()
    until(lambda: source.looks > 6)
    thread.stop()
    assert thread.join(10) and source.closed == 1
    states = [(state.state, state.why) for state in store.settings(SOURCE_STATES)]
    assert states == [("down", "[Errno 5] broken pipe"), ("up", None)]
    assert said == ["a: down: [Errno 5] broken pipe", "a: up"]


def test_a_fault_of_fareboxs_own_stops_no_other_source(store):
    fakes = {"nvml": Fake("bad", failures=10**9), "scrape": Fake("good")}
    daemon = Daemon(store, lambda text: None, lambda config, *_: fakes.get(config.kind) or Fake("spool"))
    daemon.chores = [SimpleNamespace(turn=lambda: daemon.stop() if fakes["scrape"].looks > 20 else None)]
    began = time.monotonic()
    daemon.run([NvmlConfig(kind="nvml"), ScrapeConfig(kind="scrape", url="http://a:1")])
    assert fakes["nvml"].looks <= 3 + (time.monotonic() - began) and fakes["scrape"].looks > 20
    assert all(fake.closed == 1 for fake in fakes.values())
    [down] = [state for state in store.settings(SOURCE_STATES) if state.source == "bad"]
    assert down.state == "down" and "RuntimeError: no (look, line" in down.why
