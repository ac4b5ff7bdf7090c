"""Whatever is done to a store, and in whatever order: reading it gives every row exactly once."""

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from properties import tries

from farebox.events import LEDGER, REQUESTS, SHARES, STEPS
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store, open_store

MINUTE = 60_000_000_000
TABLES = (STEPS, SHARES, REQUESTS, LEDGER)
ENGINES = ("e0", "e1")

batches = st.tuples(st.sampled_from(["append", "append_archive"]), st.sampled_from(ENGINES), st.integers(0, 25))
chores = st.tuples(st.sampled_from(["roll", "roll_before", "maintain", "compact", "reopen"]))
operations = st.lists(batches | chores, min_size=1, max_size=9)


def do(store, servers, told, operation):
    match operation:
        case ("append" | "append_archive" as how, engine, steps):
            batch = servers[engine].batch(steps)
            getattr(store, how)(batch)
            told.append(batch)
        case ("roll_before",):
            store.roll(before_ns=servers["e0"].now_ns - 30 * MINUTE)
        case ("maintain",):
            store.maintain(servers["e0"].now_ns)
        case ("reopen",):
            store.close()
            return create_store(store.path)
        case (chore,):
            getattr(store, chore)()
    return store


@tries(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=operations)
def test_every_row_is_answered_once_after_every_operation(server, said, told, operations):
    servers = {engine: server(engine, gap_ns=7 * MINUTE) for engine in ENGINES}
    done = []
    with tempfile.TemporaryDirectory() as folder:
        store = create_store(Path(folder) / "store")
        for operation in operations:
            store = do(store, servers, done, operation)
            assert said(SHARES, store.read(SHARES)) == told(SHARES, done), operation
        store.close()
        with open_store(store.path) as reader:
            for table in TABLES:
                assert said(table, reader.read(table)) == told(table, done)
            assert reader.warnings == []


def test_all_tables_come_back_as_they_went_in(tmp_path, server, said, told):
    server = server()
    batch = server.batch(200, ended=True)
    with create_store(tmp_path / "s") as store:
        store.append(batch)
        assert store.runs() == [batch.run]
        for table in TABLES:
            assert said(table, store.read(table)) == told(table, [batch])
            assert store.read(table).schema.equals(table.schema)
        assert store.progress("e0", "r0") == batch.progress
        assert store.progress("e0", "other") is None


def test_reading_is_cut_to_window_engine_and_columns(tmp_path, server):
    servers = [server("e0", gap_ns=MINUTE), server("e1", gap_ns=MINUTE)]
    first, second = servers[0].batch(300), servers[1].batch(300)
    rest = servers[0].batch(100)
    start, end = first.steps["started_ns"][50].as_py(), rest.steps["started_ns"][50].as_py()
    with create_store(tmp_path / "s") as store:
        store.append(first)
        store.roll()
        store.append_archive(second)
        store.append(rest)
        got = store.read(STEPS, ["step_seq", "started_ns"], start_ns=start, end_ns=end, engine_id="e0")
        assert got.column_names == ["step_seq", "started_ns"]
        assert sorted(got["step_seq"].to_pylist()) == list(range(50, 350))
        everything = store.read(STEPS, ["engine_id"], start_ns=start)
        assert set(everything["engine_id"].to_pylist()) == {"e0", "e1"}
        batches = list(store.scan(STEPS, ["step_seq"], engine_id="e1"))
        assert sum(batch.num_rows for batch in batches) == 300


def test_the_hot_store_keeps_two_hours_and_the_archive_everything(tmp_path, server, said, told):
    server = server(gap_ns=2 * MINUTE)
    batch = server.batch(300)
    with create_store(tmp_path / "s") as store, LiveReader(tmp_path / "s") as live:
        store.append(batch)
        assert len(live.steps()[0]) == 300
        store.roll()
        kept, _ = live.steps()
        assert {step.started_ns for step in kept} == {
            at for at in batch.steps["started_ns"].to_pylist() if at >= server.now_ns - 120 * MINUTE
        }
        assert said(STEPS, store.read(STEPS)) == told(STEPS, [batch])


def test_a_closed_hour_is_rolled_and_the_open_one_stays(tmp_path, server):
    server = server(gap_ns=MINUTE)
    with create_store(tmp_path / "s") as store:
        store.append(server.batch(30))
        store.maintain(server.now_ns)
        before_midnight = list((tmp_path / "s/archive/steps").glob("date=2026-01-01/*.parquet"))
        after_midnight = list((tmp_path / "s/archive/steps").glob("date=2026-01-02/*.parquet"))
        assert len(before_midnight) == 1
        assert after_midnight == []
        store.append(server.batch(60))
        store.maintain(server.now_ns)
        assert len(list((tmp_path / "s/archive/steps").glob("date=2026-01-02/*.parquet"))) == 1
        assert store.read(STEPS).num_rows == 90


def test_lines_of_one_ledger_key_are_added_up_when_archived(tmp_path, server, said, told):
    server = server()
    batches = [server.batch(50), server.batch(50)]
    with create_store(tmp_path / "s") as store:
        for batch in batches:
            store.append(batch)
        store.roll()
        lines = store.read(LEDGER)
        assert lines.num_rows == len(told(LEDGER, batches)) < sum(batch.ledger.num_rows for batch in batches)
        assert said(LEDGER, lines) == told(LEDGER, batches)
