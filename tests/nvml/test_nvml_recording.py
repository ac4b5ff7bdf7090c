"""GPUs and host in a store: once a second, with their outages."""

import time

import pytest
from nvml_script import SECOND_NS, START_NS, case

from farebox.collector.hardware import HardwareRecorder, steady_clock
from farebox.collector.nvml.last import last_seen
from farebox.collector.nvml.watch import GpuWatch
from farebox.events import SOURCE_STATES
from farebox.storage.errors import StoreFullError
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store


@pytest.fixture
def record(script, tmp_path):
    """Record what a list of polls tells, at their seconds."""
    now = [0]
    with create_store(tmp_path / "s") as store:
        recorder = HardwareRecorder(store, GpuWatch("node-7"), lambda: now[0])

        def call(polls):
            for poll in polls:
                script(poll)
                now[0] = START_NS + poll["t"] * SECOND_NS
                recorder.look()
            return store

        yield call
        recorder.close()


def test_a14_the_series_ends_where_the_driver_did_and_the_source_says_why(record, tmp_path):
    store = record(case("A14")["polls"])
    with LiveReader(tmp_path / "s") as live:
        assert [(row.at_ns - START_NS) // SECOND_NS for row in live.gpu_samples()[0]] == [0, 5]
        assert len(live.host_samples()[0]) == 6
        [seen] = last_seen(live, START_NS + 60 * SECOND_NS)
    assert (seen.state, seen.since_ns) == ("stale", START_NS + 5 * SECOND_NS)
    up, down = store.settings(SOURCE_STATES)
    assert (up.source, up.kind, up.state, up.why) == ("nvml:node-7", "nvml", "up", None)
    assert (down.state, down.since_ns, down.seen_ns) == ("down", START_NS + 10 * SECOND_NS, START_NS + 20 * SECOND_NS)
    assert "restart the container" in down.why


def test_a05_the_lost_card_keeps_its_last_good_values(record, tmp_path):
    record(case("A05")["polls"])
    with LiveReader(tmp_path / "s") as live:
        seen = last_seen(live, START_NS + 10 * SECOND_NS)
    assert [one.state for one in seen] == ["ok", "ok", "lost", "ok"]
    lost = seen[2]
    assert lost.since_ns == START_NS + 5 * SECOND_NS
    assert (lost.newest.util_pct, lost.good.util_pct, lost.good.at_ns) == (None, 90, START_NS)


def test_host_load_is_known_from_the_second_look_on(record, tmp_path):
    record(case("A19")["polls"])
    with LiveReader(tmp_path / "s") as live:
        first, second, *_ = live.host_samples()[0]
    assert first.cpu_permille is None and 0 <= second.cpu_permille <= 1000
    assert 0 < first.mem_used < first.mem_total and first.cpus >= 1


def test_every_look_records_every_device_once(script, tmp_path):
    devices = [case("A18")["devices"][0] | {"uuid": f"GPU-{number}"} for number in range(8)]
    script({"devices": devices})
    with create_store(tmp_path / "s") as store, LiveReader(tmp_path / "s") as live:
        recorder = HardwareRecorder(store, GpuWatch("node-7"))
        for _ in range(3):
            recorder.look()
        recorder.close()
        rows = live.gpu_samples()[0]
    assert [row.gpu_uuid for row in rows] == [device["uuid"] for device in devices] * 3
    assert len({row.at_ns for row in rows}) == 3


def test_the_clock_of_a_watch_is_not_set_back(monkeypatch):
    clock = steady_clock()
    before = clock()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert clock() >= before > START_NS - 10**18


def test_readings_wait_while_the_disk_is_full(script, tmp_path, monkeypatch):
    script(case("A18"))
    with create_store(tmp_path / "s") as store, LiveReader(tmp_path / "s") as live:
        now = iter(range(START_NS, START_NS + 9 * SECOND_NS, SECOND_NS))
        recorder = HardwareRecorder(store, GpuWatch("node-7"), lambda: next(now))
        recorder.look()
        append = store.append_samples

        def refuse(table, rows):
            raise StoreFullError("no room")

        monkeypatch.setattr(store, "append_samples", refuse)
        for _ in range(3):
            recorder.look()
        assert len(live.host_samples()[0]) == 1
        monkeypatch.setattr(store, "append_samples", append)
        recorder.look()
        recorder.close()
        assert [row.at_ns for row in live.host_samples()[0]] == [START_NS + i * SECOND_NS for i in range(5)]
        assert len({row.at_ns for row in live.gpu_samples()[0]}) == 5
