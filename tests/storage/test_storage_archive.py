"""The archive as strangers see it: private, readable without Farebox, and honest about damage."""

import os
import stat

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import farebox
from farebox.collector.checks.place import check_archive
from farebox.events import LEDGER, REQUESTS, RUNS, SHARES, STEPS
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store, open_store

MINUTE = 60_000_000_000
TABLES = (STEPS, SHARES, REQUESTS, LEDGER)


@pytest.fixture
def filled(tmp_path, server):
    """A store over two dates with several files for each, in a folder with an awkward name."""
    run = server(gap_ns=MINUTE)
    done = [run.batch(40), run.batch(40), run.batch(40, ended=True)]
    with create_store(tmp_path / "a store, 100 % ünï?#[0]") as store:
        for batch in done:
            store.append_archive(batch)
        yield store, done


def test_other_tools_read_it_with_a_glob(filled):
    store, done = filled
    steps = sum(batch.steps.num_rows for batch in done)
    pays = sum(sum(batch.shares["gpu_ns"].to_pylist()) for batch in done)
    (store.path / "archive/steps/date=2026-01-01/.tmp-1-00").write_bytes(b"half")
    hive = ds.dataset(store.path / "archive/steps", format="parquet", partitioning="hive").to_table()
    assert hive.num_rows == steps
    assert {"date", *(c.name for c in STEPS.columns)} == set(hive.column_names)
    link = store.path.with_name("link")  # the store's own name holds wildcards
    link.symlink_to(store.path)
    files = f"{link}/archive/{{}}/*/*.parquet"
    asked = (
        f"SELECT count(*), count(DISTINCT date) FROM read_parquet('{files.format('steps')}', hive_partitioning=true)"
    )
    assert duckdb.sql(asked).fetchall() == [(steps, 2)]
    assert duckdb.sql(f"SELECT sum(gpu_ns) FROM read_parquet('{files.format('shares')}')").fetchall() == [(pays,)]
    runs = duckdb.sql(f"SELECT run_id, ended_ns FROM read_parquet('{files.format('runs')}')").fetchall()
    assert runs == [("r0", done[-1].run.ended_ns)]


def test_files_are_sorted_and_say_what_their_columns_mean(filled):
    store, _ = filled
    for file in (store.path / "archive/shares").rglob("*.parquet"):
        rows = pq.read_table(file, partitioning=None)
        order = list(zip(*(rows[name].to_pylist() for name in SHARES.sort), strict=True))
        assert order == sorted(order)
        assert rows.schema.field("gpu_ns").metadata[b"unit"] == "GPU·ns".encode()


def test_compaction_leaves_one_file_per_table_and_date_with_the_same_rows(filled, said, told):
    store, done = filled
    assert store.compact() > 0
    for table in TABLES:
        assert {len(list(day.iterdir())) for day in (store.path / "archive" / table.name).iterdir()} == {1}
        assert said(table, store.read(table)) == told(table, done)
    assert store.compact() == 0


def test_compaction_waits_for_a_reader_who_then_misses_nothing(filled):
    store, _ = filled
    with open_store(store.path) as reader:
        batches = reader.scan(STEPS)
        rows = next(batches).num_rows
        assert store.compact() == 0
        rows += sum(batch.num_rows for batch in batches)
        assert rows == 120
        assert reader.warnings == []
    assert store.compact() > 0


@pytest.mark.parametrize("damage", ["cut", "missing", "flipped", "swapped"])
def test_a_damaged_file_is_named_and_the_rest_is_read(filled, damage):
    store, _ = filled
    good, bad = sorted((store.path / "archive/steps/date=2026-01-02").glob("*.parquet"))[:2]
    lost = pq.read_metadata(bad).num_rows
    content = bytearray(bad.read_bytes())
    match damage:
        case "cut":
            bad.write_bytes(content[: len(content) // 2])
        case "missing":
            bad.unlink()
        case "flipped":
            column = pq.read_metadata(bad).row_group(0).column(3)
            content[column.data_page_offset + column.total_compressed_size - 1] ^= 0xFF
            bad.write_bytes(content)
        case "swapped":
            bad.write_bytes(b"x" * len(content))
    assert store.read(STEPS).num_rows == 120 - lost
    assert len(store.warnings) == 1
    assert str(bad) in store.warnings[0]
    assert f"{lost} rows of 2026-01-02" in store.warnings[0]
    store.read(STEPS)
    assert len(store.warnings) == 1
    store.compact()
    assert bad.exists() == (damage != "missing")
    assert not good.exists() or bad.exists()


def test_only_the_owner_may_look(tmp_path, server):
    before = os.umask(0)
    try:
        with create_store(tmp_path / "deep" / "s") as store, LiveReader(tmp_path / "deep" / "s") as live:
            store.append(server().batch(5))
            live.steps()
            store.append_archive(server("e1").batch(5, ended=True))
            entries = [store.path, *store.path.rglob("*")]
            modes = {(entry.is_dir(), stat.S_IMODE(entry.stat().st_mode)) for entry in entries}
    finally:
        os.umask(before)
    assert modes == {(True, 0o700), (False, 0o600)}


def test_runs_are_rewritten_in_place(tmp_path, server):
    run = server()
    with create_store(tmp_path / "s") as store:
        for ended in (False, False, True):
            store.append(run.batch(5, ended=ended))
            store.roll()
        (file,) = (tmp_path / "s/archive/runs").rglob("*.parquet")
        assert (
            RUNS.from_arrow(pq.read_table(file, partitioning=None)) == store.runs() == RUNS.from_arrow(store.read(RUNS))
        )


def test_rows_take_few_bytes(tmp_path, server):
    with create_store(tmp_path / "s") as store:
        store.append_archive(server().batch(4000, ended=True))
        store.compact()
    for table, limit in ((STEPS, 24), (SHARES, 18)):
        files = list((tmp_path / "s/archive" / table.name).rglob("*.parquet"))
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        assert sum(file.stat().st_size for file in files) < limit * rows + 10_000 * len(files)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_scan_with_coded_texts_has_the_same_rows(filled, table):
    """Also where a window cuts some files and holds others whole, and for what is still hot."""
    store, _ = filled
    times = sorted(store.read(table).column(table.time).to_pylist())
    for start, end in ((None, None), (times[len(times) // 3], times[-1])):
        plain = store.read(table, None, start, end)
        batches = list(store.scan(table, None, start, end, coded=True))
        assert sorted(map(repr, pa.Table.from_batches(batches).to_pylist())) == sorted(map(repr, plain.to_pylist()))
        for field in batches[0].schema:
            assert not pa.types.is_string(field.type)


def test_a_foot_that_names_a_column_otherwise_is_damage_and_not_an_older_file(tmp_path, server):
    """One flipped bit there made a column of nulls of it, without a word."""
    run = server()
    with create_store(tmp_path / "s") as store:
        for _ in range(2):
            store.append_archive(run.batch(20))
        file = min((tmp_path / "s/archive/shares").rglob("*.parquet"))
        content = file.read_bytes()
        at = content.rindex(b"kv_block_ns")
        file.write_bytes(content[:at] + b"K" + content[at + 1 :])
        assert None not in store.read(SHARES)["kv_block_ns"].to_pylist()
        (warning,) = store.warnings
        assert warning.startswith(f"{file} was skipped ({pq.read_metadata(file).num_rows} rows of ")
        assert warning.endswith("its foot is not as it was written")
        store.compact()
        assert file.exists()
    with farebox.open_store(tmp_path / "s") as reader, pytest.warns(UserWarning, match="its foot is not"):
        rows = reader.query("SELECT kv_block_ns FROM shares").arrow()
        assert rows.num_rows
        assert rows["kv_block_ns"].null_count == 0


def test_the_doctor_says_that_files_are_missing(tmp_path, server):
    with create_store(tmp_path / "s") as store:
        store.append_archive(server().batch(5))
        assert check_archive(store).level == "ok"
        min((tmp_path / "s/archive/steps").rglob("*.parquet")).unlink()
        found = check_archive(store)
    assert (found.level, found.says.startswith("1 files are missing")) == ("bad", True)
