"""The main job on real input: an hour of two real services, every request, token and nanosecond accounted for."""

from itertools import pairwise

import numpy as np
import pyarrow.dataset as ds
import pytest

from farebox.collector.embedded import EmbeddedEngine, record
from farebox.engine.workloads import azure
from farebox.engine.workloads.merge import merge
from farebox.events import LEDGER, REQUESTS, SHARES, STEPS
from farebox.roofline import Replica, gpu, model
from farebox.storage.store import create_store, open_store

pytestmark = pytest.mark.xdist_group("azure")  # the run is made once
TOTALS = {"code": (8_819, 18_059_974, 245_896), "conv": (19_366, 22_361_870, 4_088_665)}


@pytest.fixture(scope="module")
def store(shared, tmp_path_factory):
    """Both traces through one H100 with Llama-3-8B, at full speed."""
    place = tmp_path_factory.mktemp("azure") / "store"
    traces = shared / "data" / "traces"
    arrivals = merge(*(azure.read(traces / f"AzureLLMInferenceTrace_{tenant}.csv", tenant) for tenant in TOTALS))
    engine = EmbeddedEngine(Replica(gpu("h100"), model("llama-3-8b")))
    with create_store(place) as opened:
        assert record(engine.config(["azure"]), arrivals, opened)
        opened.compact()
    return place


def archive(store, table):
    return ds.dataset(store / "archive" / table, format="parquet", partitioning="hive").to_table()


def test_every_request_and_token_of_the_traces_is_in_the_archive(store):
    requests = archive(store, "requests")
    counted = requests.group_by("tenant_id").aggregate(
        [("request_id", "count_distinct"), ("prompt_tokens", "sum"), ("output_tokens", "sum")]
    )
    assert {row["tenant_id"]: tuple(row.values())[1:] for row in counted.to_pylist()} == TOTALS
    assert requests.num_rows == sum(count for count, _, _ in TOTALS.values())
    times = [requests[name].to_numpy() for name in ("arrived_ns", "scheduled_ns", "first_token_ns", "finished_ns")]
    for earlier, later in pairwise(times):
        assert (earlier <= later).all()


def test_steps_shares_and_ledger_hold_the_same_tokens(store):
    prompts, outputs = (sum(total[i] for total in TOTALS.values()) for i in (1, 2))
    steps, shares, ledger = (archive(store, name) for name in ("steps", "shares", "ledger"))

    def total(table, name):
        return int(table[name].to_numpy().sum())

    computed = total(steps, "prefill_tokens") - total(steps, "recomputed_tokens") + total(steps, "cached_tokens")
    assert computed == prompts == total(ledger, "prompt_tokens")
    assert total(steps, "output_tokens") == total(shares, "output_tokens") == total(ledger, "output_tokens") == outputs


def test_every_gpu_nanosecond_has_one_owner(store):
    with open_store(store) as opened:
        (run,) = opened.runs()
    wall = (run.wall_end_ns - run.started_ns) * run.gpus
    assert int(archive(store, "ledger")["gpu_ns"].to_numpy().sum()) == wall
    steps = archive(store, "steps").sort_by("step_seq")
    count = steps.num_rows
    assert (steps["step_seq"].to_numpy() == np.arange(count)).all()
    shares = archive(store, "shares")
    paid = np.zeros(count, np.int64)
    np.add.at(paid, shares["step_seq"].to_numpy(), shares["gpu_ns"].to_numpy())
    assert (paid == steps["duration_ns"].to_numpy() * steps["gpus"].to_numpy()).all()
    starts, durations = steps["started_ns"].to_numpy(), steps["duration_ns"].to_numpy()
    assert (starts[1:] - (starts + durations)[:-1] == steps["idle_before_ns"].to_numpy()[1:]).all()


def test_farebox_and_a_stranger_read_the_same_rows(store):
    with open_store(store) as opened:
        for table in (STEPS, SHARES, REQUESTS, LEDGER):
            assert opened.read(table, [table.time]).num_rows == archive(store, table.name).num_rows
        assert not opened.warnings
