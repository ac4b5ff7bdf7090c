"""Runs at full speed: recorded by columns, the same as step by step, once, and up to the last nanosecond."""

from random import Random

import pytest

from farebox.collector.bulk import BulkRecorder, can_jump
from farebox.collector.embedded import record
from farebox.collector.recorder import Recorder
from farebox.engine.arrival import Arrival
from farebox.engine.config import EngineConfig
from farebox.engine.engine import Engine
from farebox.engine.replay import replay
from farebox.engine.shield import Shield
from farebox.events import LEDGER, REQUESTS, SHARES, STEPS
from farebox.roofline import Replica, gpu, model
from farebox.storage.store import create_store

START_NS = 1_767_225_600_000_000_000 - 7_000_000_000  # seven seconds before a day ends
MODEL = Replica(gpu("h100"), model("llama-3-8b"), tp=2).step_model()


def config(**changes):
    limits = {"kv_blocks": 90, "max_num_seqs": 6, "max_num_batched_tokens": 256} | changes
    return EngineConfig(
        engine_id="engine", run_id="run", host="host", gpu_type="h100_sxm", gpus=2, model="llama-3-8b", weights="bf16",
        block_bytes=2_097_152, step_model=MODEL, **limits,
    )  # fmt: skip


def arrivals(count=120):
    rng, at_ns = Random(4), START_NS
    for number in range(count):
        at_ns += rng.choice([0, 5_000_000, 400_000_000, 3_000_000_000])
        lengths = rng.randint(1, 400), rng.randint(0, 90)
        tier = rng.choice(["standard", "standard", "fast", "batch"])
        abort_ns = at_ns + rng.randint(0, 10**9) if rng.random() < 0.1 else None
        ids = (rng.randrange(3), 100 + number)
        yield Arrival(f"{number}", rng.choice(["ann", "bob", "[/]"]), tier, at_ns, *lengths, None, ids, abort_ns)


def tables(store):
    """Everything recorded, in one order."""
    found = {}
    for table in (STEPS, SHARES, REQUESTS, LEDGER):
        rows = store.read(table).sort_by([(name, "ascending") for name in table.key])
        if table is LEDGER:
            names = [name for name in rows.column_names if name not in table.key]
            rows = rows.group_by(list(table.key), use_threads=False).aggregate([(name, "sum") for name in names])
        found[table.name] = rows.to_pylist()
    return found


def step_by_step(store, settings):
    recorder = Recorder(store, bulk=False)

    class OneByOne:
        run, step, request = recorder.run, recorder.step, recorder.request

    replay(Engine(settings, OneByOne(), next(arrivals()).arrived_ns), arrivals())
    recorder.flush()


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "cached"])
def settings(request):
    return config(enable_prefix_caching=request.param, prefix_block_tokens=64)


@pytest.fixture(scope="module")
def expected(tmp_path_factory, settings):
    with create_store(tmp_path_factory.mktemp("steps")) as store:
        step_by_step(store, settings)
        return tables(store), store.runs()


def test_what_is_recorded_is_the_same_as_step_by_step(tmp_path, settings, expected):
    assert can_jump(settings)
    with create_store(tmp_path) as store:
        assert record(settings, arrivals(), store)
        assert (tables(store), store.runs()) == expected
        (run,) = store.runs()
        owned = sum(line["gpu_ns_sum"] for line in tables(store)["ledger"])
        assert owned == (run.ended_ns - run.started_ns) * run.gpus
        again = sorted(store.path.rglob("*.parquet"))
        assert record(settings, arrivals(), store)
        assert (tables(store), sorted(store.path.rglob("*.parquet"))) == (expected[0], again)


def test_an_interrupted_run_ends_where_it_was_told_and_is_completed_later(tmp_path, settings, expected, monkeypatch):
    monkeypatch.setattr("farebox.collector.bulk.SEGMENT_STEPS", 70)
    with create_store(tmp_path) as store:
        first, *rest = arrivals()
        recorder = BulkRecorder(settings, first, rest, store)
        with store.archiving("engine", "run") as stream:
            ticks = iter([None])

            def stop():
                if next(ticks, "stop") == "stop":
                    raise KeyboardInterrupt

            assert not recorder.record(stream, Shield(), stop)
        (run,) = store.runs()
        part = tables(store)
        assert len(part["steps"]) == 140 and run.ended_ns >= part["steps"][-1]["started_ns"]
        assert sum(line["gpu_ns_sum"] for line in part["ledger"]) == (run.ended_ns - run.started_ns) * run.gpus
        assert record(settings, arrivals(), store)
        assert (tables(store), store.runs()) == expected


def test_a_run_that_fails_leaves_nothing_behind(tmp_path):
    late = Arrival("late", "ann", "standard", START_NS - 1, 10, 10)
    with create_store(tmp_path) as store:
        with pytest.raises(ValueError, match="late arrives before"):
            record(config(), [*arrivals(5), late], store)
        assert store.runs() == [] and not list(store.path.rglob("*.parquet"))


@pytest.mark.parametrize("changes", [{"mode": "static"}, {"mode": "none"}, {"fast_cap": 2}])
def test_other_modes_take_the_other_engine(changes):
    assert not can_jump(config(**changes))
