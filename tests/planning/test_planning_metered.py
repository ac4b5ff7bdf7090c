"""Traffic that no embedded engine told: requests metered in front of an engine, and engines that tell no requests."""

import pyarrow as pa
import pytest
from planning_helpers import RATE, recorded_in

from farebox.collector.unmetered import request_lines, unmetered_run
from farebox.events import LEDGER, REQUESTS, SHARES, STEPS, Batch, Progress, Request
from farebox.planning.baseline import baseline_of
from farebox.planning.errors import PlanError
from farebox.planning.live import as_it_was, under
from farebox.planning.scenario import parse_scenario
from farebox.planning.traffic import read_recorded
from farebox.storage.store import create_store, open_store

INSTANTS = ("arrived_ns", "scheduled_ns", "first_token_ns", "finished_ns")


def copied(source, path, *, engine, requests, shift_ns=0):
    """A store with an engine's steps that tells no requests, with those that a proxy before it told, or one of both."""
    with open_store(source) as small:
        (run,) = small.runs()
        rows = {table.name: small.read(table) for table in (STEPS, SHARES, LEDGER, REQUESTS)}
    none = {table.name: table.schema.empty_table() for table in (STEPS, SHARES, REQUESTS)}
    with create_store(path) as store:
        store.put_rate(RATE)
        if engine:
            progress = Progress(rows["steps"].num_rows, 0, run.wall_end_ns)
            store.append(Batch(run, rows["steps"], rows["shares"], none["requests"], rows["ledger"], progress))
        if requests:
            told = [
                Request(**row | {"run_id": "proxy"} | {name: row[name] + shift_ns for name in INSTANTS if row[name]})
                for row in rows["requests"].to_pylist()
            ]
            proxy = unmetered_run(run.engine_id, "proxy", "gateway", run.started_ns)
            table = pa.Table.from_pylist([each._asdict() for each in told], schema=REQUESTS.schema)
            progress = Progress(0, len(told), run.wall_end_ns)
            store.append(Batch(proxy, none["steps"], none["shares"], table, request_lines(proxy, told), progress))
    return path


def test_an_engine_that_tells_no_requests_served_what_a_proxy_metered_before_it(small, tmp_path):
    path = copied(small, tmp_path / "both", engine=True, requests=True)
    with open_store(path) as store:
        recorded = read_recorded(store)
        replayed = as_it_was(recorded)
        baseline = baseline_of(store, recorded, replayed)
    assert recorded.unserved == 0
    assert baseline.errors["cost"] == pytest.approx(0, abs=1e-9)
    assert baseline.errors["TTFT p99"] == baseline.errors["TPOT p50"] == 0
    as_recorded = recorded_in(small)
    assert replayed.bill.total.gpu_ns == as_it_was(as_recorded).bill.total.gpu_ns
    few = parse_scenario(["max_num_seqs=2"])
    assert under(recorded, few).total_micro == under(as_recorded, few).total_micro


def test_requests_that_came_while_no_engine_was_up_are_left_out_and_counted(small, tmp_path, farebox):
    path = copied(small, tmp_path / "later", engine=True, requests=True, shift_ns=-10_000_000_000)
    recorded = recorded_in(path)
    assert 0 < recorded.unserved == 150 - len(recorded.arrivals)
    assert f"{recorded.unserved:,} requests are left out" in farebox("whatif", str(path), "--set", "tp=2").stdout


def test_what_cannot_be_replayed_is_said_plainly(small, tmp_path):
    with pytest.raises(PlanError, match="does not tell who asked"):
        recorded_in(copied(small, tmp_path / "page", engine=True, requests=False))
    with pytest.raises(PlanError, match="knows 150 requests, and no engine that served them"):
        recorded_in(copied(small, tmp_path / "proxy", engine=False, requests=True))
