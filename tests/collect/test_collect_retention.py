"""What the collector forgets: whole days of the tables that the file names, once an hour, and never the ledger."""

import time

from farebox.collector.collect import retention
from farebox.collector.collect.retention import Retention
from farebox.collector.config.retention import RetentionConfig
from farebox.events import GPU_SAMPLES, HOST_SAMPLES, GpuSample, HostSample
from farebox.storage.store import create_store

DAY_NS = 86_400_000_000_000


def gpu(at_ns: int) -> GpuSample:
    return GpuSample("h", "GPU-a", at_ns, 0, "H100", None, "ok", *[None] * 12)


def test_old_days_go_once_an_hour_and_what_is_not_named_stays(tmp_path):
    now_ns, seconds, said = time.time_ns(), [0.0], []
    with create_store(tmp_path / "s") as store:

        def record(*days: int) -> None:
            at = [now_ns - day * DAY_NS - 7_200_000_000_000 for day in days]
            store.append_samples(GPU_SAMPLES, GPU_SAMPLES.to_arrow(map(gpu, at)))
            hosts = [HostSample("h", at_ns, 1, None, None, None) for at_ns in at]
            store.append_samples(HOST_SAMPLES, HOST_SAMPLES.to_arrow(hosts))
            store.roll()

        def kept() -> tuple[int, int]:
            return store.read(GPU_SAMPLES).num_rows, store.read(HOST_SAMPLES).num_rows

        record(40, 20, 0)
        forgetting = Retention(RetentionConfig(gpu=30), store, said.append, lambda: seconds[0])
        forgetting.turn()
        assert kept() == (2, 3) and len(said) == 1 and "gpu: 1 rows before" in said[0]
        record(35)
        forgetting.turn()
        assert kept() == (3, 4)
        seconds[0] = retention.PERIOD_S
        forgetting.turn()
        assert kept() == (2, 4)
        Retention(RetentionConfig(), store, said.append).turn()
        assert kept() == (2, 4)
