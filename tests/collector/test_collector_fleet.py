"""A fleet recorded: many engines in one store, and a ledger that owns every GPU-nanosecond of them."""

from collections import Counter
from datetime import UTC, datetime
from itertools import islice

import pytest

from farebox.collector.fleet import record_fleet
from farebox.engine.fleet import Fleet
from farebox.engine.workloads import synthetic
from farebox.events import LEDGER, REQUESTS, SHARES, STEPS
from farebox.storage.errors import OverlapError
from farebox.storage.store import create_store

START_NS = int(datetime(2026, 1, 1, 6, 59, 45, tzinfo=UTC).timestamp()) * 10**9
FLEET = """
[[endpoint]]
name = "chat"
gpu = "h100"
model = "llama-3-8b"
replicas = 2
min_replicas = 1
hours = "07:00-07:01"
load_seconds = 12.5

[[endpoint]]
name = "code"
gpu = "a100"
model = "llama-3-8b"
tp = 2

[[endpoint]]
name = "gone"
gpu = "h100"
model = "llama-3-8b"
until = 2026-01-01T07:00:00Z

[[route]]
tenant = "code"
endpoint = "code"

[[route]]
tenant = "summariser"
endpoint = "gone"
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory) -> Fleet:
    file = tmp_path_factory.mktemp("fleet") / "fleet.toml"
    file.write_text(FLEET)
    return Fleet.from_toml(file)


def arrivals():
    return islice(synthetic.generate(3, START_NS), 280)


def record(fleet, place, **options):
    with create_store(place) as store:
        return record_fleet(fleet, arrivals(), store, inputs=["synthetic:3"], **options)


def ledger(place) -> Counter[tuple[object, ...]]:
    with create_store(place) as store:
        lines = store.read(LEDGER).to_pylist()
    total: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        total[tuple(line[name] for name in LEDGER.key)] += line["gpu_ns"]
    return +total


def test_every_gpu_nanosecond_of_every_run_has_one_owner(fleet, tmp_path):
    told = record(fleet, tmp_path)
    assert told.finished and len(told.runs) == 5
    with create_store(tmp_path) as store:
        runs, steps, shares, requests = store.runs(), store.read(STEPS), store.read(SHARES), store.read(REQUESTS)
    assert {run[:2] for run in runs} == told.runs
    owned: Counter[tuple[str, str]] = Counter()
    for key, gpu_ns in ledger(tmp_path).items():
        line = dict(zip(LEDGER.key, key, strict=True))
        owned[line["engine_id"], line["account"]] += gpu_ns
    walls: Counter[str] = Counter()
    for run in runs:
        walls[run.engine_id] += (run.wall_end_ns - run.started_ns) * run.gpus
    for engine_id, wall in walls.items():
        assert wall == sum(gpu_ns for (owner, _), gpu_ns in owned.items() if owner == engine_id)
    assert owned["chat-1", "overhead"] == 12_500_000_000
    assert owned["code-0", "overhead"] == 0
    assert sum(shares["gpu_ns"].to_pylist()) == sum(s["duration_ns"] * s["gpus"] for s in steps.to_pylist())
    assert sorted(requests["request_id"].to_pylist()) == sorted(a.request_id for a in arrivals())
    assert {run.host for run in runs} == {"chat", "code", "gone"}
    refused = [r["arrived_ns"] for r in requests.to_pylist() if r["finish_reason"] == "rejected"]
    assert len(refused) > 1 and min(refused) >= START_NS + 15 * 10**9


def test_telling_it_again_changes_nothing_and_an_interrupted_one_is_completed(fleet, tmp_path):
    def stop(told: int) -> None:
        if told > 100:
            raise KeyboardInterrupt

    assert not record(fleet, tmp_path / "cut", on_tick=stop).finished
    assert ledger(tmp_path / "cut")
    record(fleet, tmp_path / "whole")
    assert record(fleet, tmp_path / "cut").finished
    record(fleet, tmp_path / "whole")
    assert ledger(tmp_path / "cut") == ledger(tmp_path / "whole")
    with create_store(tmp_path / "cut") as cut, create_store(tmp_path / "whole") as whole:
        assert cut.runs() == whole.runs()
        for table in (STEPS, REQUESTS):
            by_key = [(name, "ascending") for name in table.key]
            assert cut.read(table).sort_by(by_key).equals(whole.read(table).sort_by(by_key))


def test_other_traffic_at_the_same_time_is_refused(fleet, tmp_path):
    with create_store(tmp_path) as store:
        record_fleet(fleet, islice(arrivals(), 5), store, inputs=["five"])
        with pytest.raises(OverlapError, match="another store"):
            record_fleet(fleet, arrivals(), store, inputs=["all"])
