"""Recorded time lived once more is the recording, to the last integer."""

from dataclasses import replace
from itertools import cycle

import pytest
from planning_helpers import FLEET, START_NS, config, record_into, traffic

from farebox.collector.fleet import record_fleet
from farebox.costing.periods import Period
from farebox.engine.fleet import Fleet
from farebox.events import MINUTE_NS, STEPS
from farebox.planning.baseline import baseline_of
from farebox.planning.live import as_it_was
from farebox.planning.traffic import read_recorded
from farebox.storage.store import create_store, open_store

ENGINES = {
    "continuous": {},
    "few blocks": {"kv_blocks": 700, "max_num_seqs": 32},
    "static": {"mode": "static", "max_num_seqs": 8},
    "one at a time": {"mode": "none"},
    "fast cap": {"fast_cap": 2},
    "priority": {"scheduling_policy": "priority", "kv_blocks": 900},
    "speculation": {"num_speculative_tokens": 3},
    "async": {"async_scheduling": True},
}


@pytest.mark.parametrize("options", ENGINES.values(), ids=ENGINES)
def test_a_replay_as_it_was_is_the_recording(tmp_path, options):
    path = record_into(tmp_path / "store", config(**options), traffic(120, tiers=True))
    with open_store(path) as store:
        recorded = read_recorded(store)
        replayed = as_it_was(recorded)
        assert any(arrival.abort_ns for arrival in recorded.arrivals)
        assert baseline_of(store, recorded, replayed).is_exact
        assert replayed.steps.steps == store.read(STEPS, ("step_seq",)).num_rows
    assert replayed.bill.check() == ()


def test_shared_prefixes_are_found_again(tmp_path):
    blocks = cycle([(1, 2, 3), (1, 2, 4), (5, 6), (1, 7)])
    asked = [
        arrival._replace(prompt_tokens=512 * len(ids), prefix_ids=ids)
        for arrival, ids in zip(traffic(80), blocks, strict=False)
    ]
    path = record_into(tmp_path / "store", config(enable_prefix_caching=True), asked)
    with open_store(path) as store:
        recorded = read_recorded(store)
        assert recorded.runs[0].config.enable_prefix_caching
        replayed = as_it_was(recorded)
        assert sum(replayed.requests.column("cached_tokens").to_pylist()) > 0
        assert baseline_of(store, recorded, replayed).is_exact


def test_a_fleet_with_hours_is_the_recording(tmp_path):
    file = tmp_path / "fleet.toml"
    file.write_text(FLEET)
    with create_store(tmp_path / "store") as store:
        record_fleet(Fleet.from_toml(file), traffic(500), store, inputs=["test"])
        recorded = read_recorded(store)
        assert {run.run.engine_id for run in recorded.runs} == {"chat-0", "chat-1", "night-0"}
        assert any(run.run.load_ns for run in recorded.runs)
        assert baseline_of(store, recorded, as_it_was(recorded)).is_exact


def test_a_recording_that_the_model_does_not_explain_tells_its_error(tmp_path):
    path = record_into(tmp_path / "store", config(), traffic(60))
    with open_store(path) as store:
        recorded = read_recorded(store)
        (run,) = recorded.runs
        slower = replace(run.config.step_model, overhead=run.config.step_model.overhead * 40)
        other = replace(recorded, runs=(run._replace(config=replace(run.config, step_model=slower)),))
        baseline = baseline_of(store, recorded, as_it_was(other))
    assert not baseline.is_exact
    assert baseline.errors["cost"] is not None
    assert baseline.errors["cost"] > 0.1
    assert baseline.text().startswith("baseline error (replayed against recorded): cost +")


def test_a_window_takes_the_requests_that_arrived_in_it(tmp_path):
    path = record_into(tmp_path / "store", config(), traffic(700))
    window = Period.between(START_NS, START_NS + MINUTE_NS)
    with open_store(path) as store:
        recorded = read_recorded(store, window)
    assert 0 < len(recorded.arrivals) < 700
    assert all(window.from_ns <= arrival.arrived_ns < window.to_ns for arrival in recorded.arrivals)
    outcome = as_it_was(recorded)
    assert outcome.bill.check() == ()
    assert outcome.usage.wall_gpu_ns > 0
