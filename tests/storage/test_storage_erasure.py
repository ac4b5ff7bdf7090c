"""A tenant's requests are erased for good, whatever happens meanwhile; the sums stay."""

import subprocess
import sys
from pathlib import Path

import pytest

from farebox.events import LEDGER, REQUESTS, SHARES, STEPS
from farebox.storage.errors import ArchiveBusyError, StoreError
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store, open_store

CHILD = str(Path(__file__).with_name("storage_child.py"))
HOUR = 3_600_000_000_000


@pytest.fixture
def filled(tmp_path, server):
    """Requests in several files of two dates, copies of some in hot, and some that only hot has."""
    run = server(gap_ns=20_000_000_000)
    done = [run.batch(60) for _ in range(6)]
    with create_store(tmp_path / "s") as store:
        for batch in done[:4]:
            store.append_archive(batch)
        for batch in done[4:]:
            store.append(batch)
    return tmp_path / "s", done


def requests_of(batches, *, chat):
    rows = [row for batch in batches for row in REQUESTS.from_arrow(batch.requests)]
    return {row.request_id for row in rows if (row.tenant_id == "chat") == chat}


def lean(batch):
    """A batch of two tables: each adds moments to die at."""
    return batch._replace(steps=STEPS.schema.empty_table(), shares=SHARES.schema.empty_table())


def test_rows_go_and_sums_stay(filled, said, told):
    path, done = filled
    gone, kept = requests_of(done, chat=True), requests_of(done, chat=False)
    assert gone and kept
    with create_store(path) as store:
        assert store.erase_requests("chat") == len(gone)
        assert store.erase_requests("chat") == 0
        assert set(store.read(REQUESTS)["request_id"].to_pylist()) == kept
        for table in (STEPS, SHARES, LEDGER):
            assert said(table, store.read(table)) == told(table, done)
        assert store.progress("e0", "r0") == done[-1].progress
        with LiveReader(path) as live:
            assert {row.tenant_id for row in live.requests()[0]} <= {"code", "nightly", "voice"}


def test_no_byte_of_them_stays_in_the_hot_store(filled, server):
    path, _ = filled
    with create_store(path) as store:
        batch = server("e1", gap_ns=1).batch(40)
        secret = batch.requests.slice(0, 1).to_pylist()[0] | {"request_id": "very-secret-name", "tenant_id": "chat"}
        store.append(batch._replace(requests=REQUESTS.schema.empty_table().from_pylist([secret], REQUESTS.schema)))
        store.erase_requests("chat")
        files = [file for file in path.rglob("*") if file.is_file()]
        assert len(files) > 3
        assert not [file for file in files if b"very-secret-name" in file.read_bytes()]


def test_a_reader_keeps_what_it_reads_and_the_next_call_erases_it(filled):
    path, done = filled
    with create_store(path) as store, open_store(path) as reader:
        store.roll()
        rows = reader.scan(REQUESTS)
        first = next(rows)
        with pytest.raises(ArchiveBusyError, match="try again"):
            store.erase_requests("chat")
        read = first.num_rows + sum(batch.num_rows for batch in rows)
        assert read == len(requests_of(done, chat=True)) + len(requests_of(done, chat=False))
        assert store.erase_requests("chat") == len(requests_of(done, chat=True))


def test_a_file_that_cannot_be_read_is_named(filled):
    path, done = filled
    bad = sorted((path / "archive/requests").rglob("*.parquet"))[0]
    bad.write_bytes(b"x" * bad.stat().st_size)
    with create_store(path) as store:
        with pytest.raises(StoreError, match=f"may hold more: .*{bad.name}"):
            store.erase_requests("chat")
        assert not set(store.read(REQUESTS)["request_id"].to_pylist()) & requests_of(done, chat=True)


def test_killed_at_any_moment(tmp_path, server, said, told):
    path, run = tmp_path / "s", server()
    done = [lean(run.batch(90)) for _ in range(2)]
    with create_store(path) as store:
        store.append_archive(done[0])
        store.append(done[1])
    command = [sys.executable, CHILD, "crash", str(path), "erase_requests", ""]
    outcomes = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout.splitlines()
    codes = [int(line.rsplit(" ", 1)[1]) for line in outcomes]
    assert codes == [9] * (len(codes) - 1) + [0]
    assert len(codes) > 12
    kept = requests_of(done, chat=False)
    for line in outcomes[::3]:
        with create_store(line.rsplit(" ", 1)[0]) as store:
            found = set(store.read(REQUESTS)["request_id"].to_pylist())
            assert kept <= found <= kept | requests_of(done, chat=True)
            store.erase_requests("chat")
            assert sorted(store.read(REQUESTS)["request_id"].to_pylist()) == sorted(kept)
            assert said(LEDGER, store.read(LEDGER)) == told(LEDGER, done)
            assert store.warnings == []
