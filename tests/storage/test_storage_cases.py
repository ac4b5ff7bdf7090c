"""Troubles of other stores, as this one meets them. E03 is in test_storage_full.py, E17 in test_storage_crash.py."""

import json
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.fs import LocalFileSystem
from sqlalchemy import insert, select

import farebox
from farebox.collector.hardware import steady_clock
from farebox.events import HOST_SAMPLES, LEDGER, SHARES, STEPS, HostSample
from farebox.storage import mounts
from farebox.storage import store as store_module
from farebox.storage.database import Database
from farebox.storage.errors import OverlapError
from farebox.storage.instants import instant_ns
from farebox.storage.live import LiveReader
from farebox.storage.parquet import scan_file, write_file
from farebox.storage.store import create_store, open_store
from farebox.storage.tables import FILES

CASES = Path(__file__).resolve().parents[1] / "cases"
CHILD = str(Path(__file__).with_name("storage_child.py"))


def test_e01_reading_and_then_writing_waits_for_the_other_writer(tmp_path):
    """The deferred transaction of the case fails at once; a writer that says so at its start does not."""
    create_store(tmp_path / "s").close()
    file = tmp_path / "s/live.sqlite"
    with closing(sqlite3.connect(file, timeout=10, isolation_level=None)) as deferred:
        deferred.execute("BEGIN")
        deferred.execute("SELECT * FROM files").fetchall()
        with open_store(tmp_path / "s") as other:
            other.put_rate(farebox_rate())
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            deferred.execute("DELETE FROM files")
    first, second = Database(file), Database(file)
    with ThreadPoolExecutor(1) as pool, first.writing() as one:
        one.execute(select(FILES)).fetchall()
        done = pool.submit(add_file, second)
        assert not done.done()
        one.execute(insert(FILES).values(path="a", table_name="t", date="d", rows=1, bytes=1, min_ns=0, max_ns=0))
    done.result(10)
    with first.reading() as one:
        assert one.execute(select(FILES.c.path)).scalars().all() == ["a", "b"]
    first.close()
    second.close()


def farebox_rate():
    from farebox.events import Rate

    return Rate("any", "", "USD", "1", None, 0, None, "")


def add_file(database):
    with database.writing() as two:
        assert two.execute(select(FILES.c.path)).scalars().all() == ["a"]
        two.execute(insert(FILES).values(path="b", table_name="t", date="d", rows=1, bytes=1, min_ns=0, max_ns=0))


def test_e02_the_log_shrinks_once_a_long_reader_has_ended(tmp_path, server, monkeypatch):
    monkeypatch.setattr(store_module, "_WAL_LIMIT", 100_000)
    run = server()
    log = tmp_path / "s/live.sqlite-wal"
    with create_store(tmp_path / "s") as store:
        with closing(sqlite3.connect(tmp_path / "s/live.sqlite", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM steps").fetchone()
            store.append(run.batch(300))
            grown = log.stat().st_size
            store.maintain(run.now_ns)
            assert log.stat().st_size >= grown > 100_000
        store.append(run.batch(1))
        store.maintain(run.now_ns)
        assert log.stat().st_size == 0


def test_e05_cut_empty_and_half_written_files_beside_good_ones(tmp_path, server, said, told):
    run = server()
    done = [run.batch(20) for _ in range(4)]
    with create_store(tmp_path / "s") as store:
        for batch in done:
            store.append_archive(batch)
        cut, empty, *_ = sorted((tmp_path / "s/archive/shares").rglob("*.parquet"))
        lost = sum(pq.read_metadata(file).num_rows for file in (cut, empty))
        cut.write_bytes(cut.read_bytes()[:-1])
        empty.write_bytes(b"")
        (cut.parent / ".tmp-next").write_bytes(b"PAR1")
        assert store.read(SHARES).num_rows == sum(batch.shares.num_rows for batch in done) - lost
        assert all(any(file.name in warning for warning in store.warnings) for file in (cut, empty))
        assert said(STEPS, store.read(STEPS)) == told(STEPS, done)


def test_e06_a_month_of_files_by_the_minute_becomes_one_a_day(tmp_path):
    host = HostSample("h", 0, 8, None, 5, 9)
    with create_store(tmp_path / "s") as store:
        for minute in range(40):
            at = [86_400_000_000_000 * (minute % 2) + 60_000_000_000 * minute + i for i in range(3)]
            store.append_samples(HOST_SAMPLES, HOST_SAMPLES.to_arrow([host._replace(at_ns=at_ns) for at_ns in at]))
            store.roll()
        files = tmp_path / "s/archive/host"
        assert len(list(files.rglob("*.parquet"))) == 40
        store.compact()
        assert len(list(files.rglob("*.parquet"))) == 2
        assert store.read(HOST_SAMPLES).num_rows == 120


def test_e07_a_column_that_old_files_lack_is_null_and_stays_exact(tmp_path):
    host = HostSample("h", 7, 8, None, 2**53 + 1, 9)
    rows = HOST_SAMPLES.to_arrow([host])
    write_file((tmp_path / "new.parquet").open("wb"), HOST_SAMPLES, rows)
    pq.write_table(rows.drop_columns(["cpu_permille", "mem_total"]), tmp_path / "old.parquet")
    nulls = rows.set_column(3, "cpu_permille", pa.nulls(1))
    pq.write_table(nulls, tmp_path / "nulls.parquet")
    read = {
        name: pa.Table.from_batches(
            scan_file(LocalFileSystem(), str(tmp_path / f"{name}.parquet"), HOST_SAMPLES.schema)
        )
        for name in ("new", "old", "nulls")
    }
    assert HOST_SAMPLES.from_arrow(read["new"]) == HOST_SAMPLES.from_arrow(read["nulls"]) == [host]
    assert HOST_SAMPLES.from_arrow(read["old"]) == [host._replace(mem_total=None)]


def test_e09_instants_keep_their_zone_and_compare_as_numbers(tmp_path):
    at = datetime(2026, 5, 10, 13, 30, 45, tzinfo=timezone(timedelta(hours=-8)))
    with create_store(tmp_path / "s") as store:
        store.append_samples(HOST_SAMPLES, HOST_SAMPLES.to_arrow([HostSample("h", instant_ns(at), 8, 1, 1, 1)]))
    with farebox.open_store(tmp_path / "s") as store:
        (told,) = store.host("2026-05-10T21:00Z").df()["at"]
        assert told.isoformat() == "2026-05-10T21:30:45+00:00"
        assert store.host(datetime(2026, 5, 11, 3, 0, tzinfo=timezone(timedelta(hours=5)))).arrow().num_rows == 0
        assert store.host("2026-05-10", at + timedelta(seconds=1)).arrow().num_rows == 1
        with pytest.raises(farebox.InputError, match="no zone"):
            store.host(datetime(2026, 5, 10, 21, 0))


@pytest.mark.parametrize("hour", ["2026-03-29T00:00Z", "2026-10-25T00:00Z"])
def test_e09_hours_in_which_clocks_are_changed_are_hours_like_others(tmp_path, hour):
    start = instant_ns(hour)
    at = [start + quarter * 900_000_000_000 for quarter in range(12)]
    with create_store(tmp_path / "s") as store:
        store.append_samples(HOST_SAMPLES, HOST_SAMPLES.to_arrow([HostSample("h", x, 8, 1, 1, 1) for x in at]))
        store.roll()
    with farebox.open_store(tmp_path / "s") as store:
        local = store.host().df()["at"].dt.tz_convert("Europe/Berlin")
        assert local.diff().dropna().unique().tolist() == [timedelta(minutes=15)]
        assert store.host(date.fromisoformat(hour[:10])).arrow().num_rows == 12


def test_e10_big_integers_beside_nulls_survive_every_way(tmp_path):
    big, time_ns = 9_007_199_254_740_993, 1_378_260_489_959_724_229
    samples = [HostSample("h", time_ns, 8, None, big, None), HostSample("h", 3, 8, 1, None, 2)]
    with create_store(tmp_path / "s") as store:
        store.append_samples(HOST_SAMPLES, HOST_SAMPLES.to_arrow(samples))
        store.roll()
        (file,) = (tmp_path / "s/archive/host/date=2013-09-04").iterdir()
        assert pq.read_table(file, partitioning=None)["mem_used"].to_pylist() == [big]
        assert duckdb.sql(f"SELECT mem_used, at_ns FROM '{file}'").fetchall() == [(big, time_ns)]
        assert f"{time_ns},8,,{big}," in store_csv(store.path)


def store_csv(path):
    command = [sys.executable, "-m", "farebox.cli", "export", str(path), "host"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_e13_a_clock_that_is_set_back_moves_no_recorded_time(monkeypatch):
    case = json.loads((CASES / "E13.seq.json").read_text())
    clock = iter(zip(case["wall_s"], case["mono_s"], strict=True))
    wall, mono = next(clock)
    monkeypatch.setattr("time.time_ns", lambda: wall * 10**9)
    monkeypatch.setattr("time.monotonic_ns", lambda: mono * 10**9)
    steady = steady_clock()
    told = [steady()]
    for wall, mono in clock:  # noqa: B007 -- the two clocks read them
        told.append(steady())
    gaps = [(b - a) // 10**9 for a, b in pairwise(told)]
    rates = [(b - a) / gap for a, b, gap in zip(case["counter"], case["counter"][1:], gaps, strict=False)]
    assert rates == [case["expect_rate"]] * 4


def test_e13_runs_around_a_step_back_keep_their_order_and_every_row(tmp_path, server, said, told):
    """An engine that restarts after the clock was set back is refused for the time that it would claim twice."""
    first = server(run_id="r0")
    done = first.batch(50, ended=True)
    with create_store(tmp_path / "s") as store:
        store.append(done)
        with pytest.raises(OverlapError, match="overlaps"):
            store.append(server(run_id="r1", start_ns=first.now_ns - 10**8).batch(5))
        assert said(LEDGER, store.read(LEDGER)) == told(LEDGER, [done])


def test_e15_folders_are_called_by_the_plain_date(tmp_path, server):
    run = server(gap_ns=60_000_000_000)
    with create_store(tmp_path / "s") as store:
        store.append_archive(run.batch(100))
    names = {folder.name for folder in (tmp_path / "s/archive").glob("*/*")}
    assert names == {"date=2026-01-01", "date=2026-01-02"}


def test_e16_two_processes_that_start_at_once_both_succeed_or_are_told(tmp_path):
    """One makes the store; the other is refused with its pid, never with an error about journals or locks."""
    command = [sys.executable, CHILD, "record", str(tmp_path / "s"), "3"]
    pair = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    errors = [process.communicate(timeout=120)[1] for process in pair]
    for process, error in zip(pair, errors, strict=True):
        assert (
            process.returncode == 0
            or "is recording into" in error
            or "already recorded" in error
            or "60 steps recorded" in error
        )
    assert any(process.returncode == 0 for process in pair)
    with closing(sqlite3.connect(tmp_path / "s/live.sqlite")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.parametrize(("kind", "journal"), [("nfs4", "delete"), ("fuse.sshfs", "delete"), ("ext4", "wal")])
def test_a_network_file_system_gets_no_write_ahead_log(tmp_path, server, monkeypatch, kind, journal):
    monkeypatch.setattr(mounts, "file_system", lambda path: kind)
    with create_store(tmp_path / "s") as store, LiveReader(tmp_path / "s") as live:
        store.append(server().batch(20))
        assert len(live.steps()[0]) == 20
        assert (tmp_path / "s/live.sqlite-wal").exists() == (journal == "wal")
    monkeypatch.setattr(mounts, "file_system", lambda path: "ext4")
    with create_store(tmp_path / "s") as store:
        assert store.read(STEPS).num_rows == 20
    with closing(sqlite3.connect(tmp_path / "s/live.sqlite")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
