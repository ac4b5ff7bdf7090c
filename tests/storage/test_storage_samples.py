"""Readings and intervals: kept hot for the screens, rolled to the archive, every row once."""

import pytest

from farebox.events import GPU_SAMPLES, HOST_SAMPLES, INTERVALS, STEPS, GpuSample, HostSample, Interval
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store, open_store

HOUR_NS = 3_600_000_000_000
GPU = GpuSample(
    "host-ü 1", "GPU-0", 0, 0, "NVIDIA H100", None, "ok", 100, 5, 80, "own", 190_000, "average", 700_000, 7, "counter",
    1980, 44, None,
)  # fmt: skip
LOST = GPU._replace(gpu_uuid="GPU-2", state="lost", util_pct=None, missing='{"util_pct":"GPU is lost"}')


def samples(hours):
    at = [hour * HOUR_NS + 7 for hour in range(hours)]
    return [sample._replace(at_ns=at_ns) for at_ns in at for sample in (GPU, LOST)]


def test_samples_live_hot_for_two_hours_and_for_good_in_the_archive(tmp_path):
    rows = samples(5)
    hosts = [HostSample("host-ü 1", row.at_ns, 8, 125, 60, 128) for row in rows[::2]]
    with create_store(tmp_path / "s") as store:
        store.append_samples(GPU_SAMPLES, GPU_SAMPLES.to_arrow(rows))
        store.append_samples(HOST_SAMPLES, HOST_SAMPLES.to_arrow(hosts))
        store.roll()
        store.append_samples(GPU_SAMPLES, GPU_SAMPLES.to_arrow(samples(6)[-2:]))
    with open_store(tmp_path / "s") as store, LiveReader(tmp_path / "s") as live:
        assert sorted(GPU_SAMPLES.from_arrow(store.read(GPU_SAMPLES))) == sorted(samples(6))
        assert HOST_SAMPLES.from_arrow(store.read(HOST_SAMPLES)) == hosts
        assert live.gpu_samples()[0] == samples(6)[4:]
        assert live.host_samples()[0] == hosts[2:]
        window = store.read(GPU_SAMPLES, start_ns=HOUR_NS, end_ns=2 * HOUR_NS, engine_id="e0")
        assert GPU_SAMPLES.from_arrow(window) == samples(2)[2:]


def test_events_are_no_samples(tmp_path):
    with create_store(tmp_path / "s") as store, pytest.raises(ValueError, match="steps holds no samples"):
        store.append_samples(STEPS, STEPS.to_arrow([]))


def test_intervals_are_recorded_with_their_batch(tmp_path, server):
    run = server()
    batch = run.batch(2)
    told = [
        Interval(
            "e0", "r0", row.step_seq, row.started_ns, row.duration_ns, 17, 3, (810_000, 220_000), 9, None, 5, 1, 0,
            None, '{"ttft":[[0.5,3]]}', '{"cached_tokens":"no such metric"}',
        )
        for row in STEPS.from_arrow(batch.steps)
    ]  # fmt: skip
    with create_store(tmp_path / "s") as store, LiveReader(tmp_path / "s") as live:
        store.append(batch._replace(intervals=INTERVALS.to_arrow(told)))
        assert live.intervals()[0] == told
        store.roll()
        assert INTERVALS.from_arrow(store.read(INTERVALS)) == told
        store.append_archive(run.batch(1))
        assert INTERVALS.from_arrow(store.read(INTERVALS)) == told
