"""From engine events to a booked store: nothing lost, nothing twice, every nanosecond owned."""

from itertools import accumulate

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.collector.recorder import Recorder
from farebox.engine.arrival import Arrival
from farebox.engine.config import EngineConfig
from farebox.engine.engine import Engine
from farebox.engine.replay import replay
from farebox.events import LEDGER, REQUESTS, SHARES, STEPS, Batch, Progress, Run
from farebox.roofline import Replica, gpu, model

START = 1_767_225_600_000_000_000 - 7_000_000_000  # seven seconds before a minute ends
MODEL = Replica(gpu("h100"), model("llama-3-8b"), tp=2).step_model()


class MemoryStore:
    """A store's writing side, in memory."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []

    def append(self, batch: Batch) -> None:
        self.batches.append(batch)

    append_archive = append

    def run(self, engine_id: str, run_id: str) -> Run | None:
        return self.batches[-1].run if self.batches else None

    def progress(self, engine_id: str, run_id: str) -> Progress | None:
        return self.batches[-1].progress if self.batches else None

    def table(self, name: str) -> pa.Table:
        return pa.concat_tables([getattr(batch, name) for batch in self.batches])

    def ledger(self) -> dict[tuple[object, ...], int]:
        lines = self.table("ledger").group_by(list(LEDGER.key)).aggregate([("gpu_ns", "sum")]).to_pylist()
        return {tuple(line[name] for name in LEDGER.key): line["gpu_ns_sum"] for line in lines}


@st.composite
def workloads(draw: st.DrawFn) -> list[Arrival]:
    gaps = draw(st.lists(st.integers(0, 20_000_000_000), min_size=1, max_size=25))
    times = accumulate(gaps, initial=START)
    return [
        Arrival(
            request_id=str(number),
            tenant_id=draw(st.sampled_from(["ann", "bob", "[/]"])),
            tier=draw(st.sampled_from(["standard", "fast", "batch"])),
            arrived_ns=at,
            prompt_tokens=draw(st.integers(1, 300)),
            output_tokens=draw(st.integers(0, 40)),
        )
        for number, at in enumerate(times)
    ]


def config(**changes: object) -> EngineConfig:
    limits = {"kv_blocks": 40, "max_num_seqs": 4, "max_num_batched_tokens": 64} | changes
    return EngineConfig(
        engine_id="engine",
        run_id="run",
        host="host",
        gpu_type="h100_sxm",
        gpus=2,
        model="llama-3-8b",
        weights="bf16",
        block_bytes=2_097_152,
        step_model=MODEL,
        **limits,
    )


def record(store: MemoryStore, arrivals: list[Arrival], flush_every: int, **changes: object) -> None:
    recorder = Recorder(store, bulk=False)
    calls = 0

    class Flushing:
        run = staticmethod(recorder.run)
        request = staticmethod(recorder.request)

        @staticmethod
        def step(step, cells):
            nonlocal calls
            recorder.step(step, cells)
            calls += 1
            if calls % flush_every == 0:
                recorder.flush()

    replay(Engine(config(**changes), Flushing(), arrivals[0].arrived_ns), arrivals)
    recorder.flush()


@tries(35)
@given(arrivals=workloads(), flush_every=st.integers(1, 200), mode=st.sampled_from(["continuous", "static", "none"]))
def test_every_gpu_nanosecond_has_one_owner(arrivals, flush_every, mode):
    store = MemoryStore()
    record(store, arrivals, flush_every, mode=mode)
    run = store.batches[-1].run
    assert sum(store.ledger().values()) == (run.wall_end_ns - run.started_ns) * run.gpus
    steps, shares = store.table("steps"), store.table("shares")
    assert steps["step_seq"].to_pylist() == list(range(steps.num_rows))
    paid = shares.group_by("step_seq").aggregate([("gpu_ns", "sum")]).sort_by("step_seq")["gpu_ns_sum"].to_pylist()
    assert paid == [row["duration_ns"] * row["gpus"] for row in steps.to_pylist()]
    for row in steps.to_pylist():
        assert row["prefill_ns"] + row["decode_ns"] == row["duration_ns"]


@tries(40)
@given(arrivals=workloads())
def test_all_tokens_are_counted_once(arrivals):
    store = MemoryStore()
    record(store, arrivals, 50)
    steps, requests, shares = (store.table(name) for name in ("steps", "requests", "shares"))

    def total(table: pa.Table, name: str) -> int:
        return sum(table[name].to_pylist())

    served = [row for row in requests.to_pylist() if row["finish_reason"] != "rejected"]
    prompts = total(steps, "prefill_tokens") - total(steps, "recomputed_tokens") + total(steps, "cached_tokens")
    assert prompts == sum(row["prompt_tokens"] for row in served)
    outputs = sum(row["output_tokens"] for row in served)
    assert total(steps, "output_tokens") == total(shares, "output_tokens") == outputs
    ledger = store.table("ledger")
    assert (total(ledger, "prompt_tokens"), total(ledger, "output_tokens")) == (prompts, outputs)
    assert total(ledger, "requests") == requests.num_rows == len(arrivals)


@tries(25)
@given(arrivals=workloads(), flush_every=st.integers(1, 50), keep=st.integers(0, 30))
def test_a_run_told_again_after_a_crash_is_recorded_once(arrivals, flush_every, keep):
    whole, crashed = MemoryStore(), MemoryStore()
    record(whole, arrivals, 1000)
    record(crashed, arrivals, flush_every)
    del crashed.batches[keep:]
    record(crashed, arrivals, 13)
    assert crashed.ledger() == whole.ledger()
    for name, table in (("steps", STEPS), ("shares", SHARES), ("requests", REQUESTS)):
        assert table.from_arrow(crashed.table(name)) == table.from_arrow(whole.table(name))
    recorded = len(crashed.batches)
    record(crashed, arrivals, 7)
    assert len(crashed.batches) == recorded


def test_a_quiet_engine_books_idle_up_to_its_heartbeat():
    store = MemoryStore()
    recorder = Recorder(store, bulk=False)
    run = config().run(START)
    recorder.run(run)
    recorder.run(run._replace(heartbeat_ns=START + 90_000_000_000))
    recorder.flush()
    lines = {(key[0], key[4]): gpu_ns for key, gpu_ns in store.ledger().items()}
    minute = 60_000_000_000
    first = START // minute * minute
    assert lines == {
        (first, "idle"): 2 * 7_000_000_000,
        (first + minute, "idle"): 2 * minute,
        (first + 2 * minute, "idle"): 2 * 23_000_000_000,
    }


def test_model_load_is_overhead():
    store = MemoryStore()
    recorder = Recorder(store, bulk=False)
    run = config().run(START)._replace(load_ns=2_000_000_000, heartbeat_ns=START + 5_000_000_000)
    recorder.run(run)
    recorder.flush()
    assert {key[4]: gpu_ns for key, gpu_ns in store.ledger().items()} == {
        "overhead": 4_000_000_000,
        "idle": 6_000_000_000,
    }


@pytest.mark.parametrize("told", [0, 3])
def test_nothing_new_is_nothing_written(told):
    store = MemoryStore()
    recorder = Recorder(store, bulk=False)
    for _ in range(told):
        recorder.run(config().run(START))
        recorder.flush()
    recorder.flush()
    assert len(store.batches) == min(told, 1)
