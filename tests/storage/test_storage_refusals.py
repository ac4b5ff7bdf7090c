"""What a store refuses, and that it says what happened and what to do."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from farebox.events import STEPS, Progress
from farebox.storage.database import Database
from farebox.storage.errors import DuplicateError, OverlapError, StoreError, StoreLockedError, StoreNotFoundError
from farebox.storage.live import LiveReader
from farebox.storage.migrations import check_version, migrate
from farebox.storage.store import create_store, open_store
from farebox.storage.versions import MIGRATIONS, migration

NEWEST = max(MIGRATIONS)
CHILD = str(Path(__file__).with_name("storage_child.py"))


def test_a_second_writer_is_told_the_first_ones_pid(tmp_path):
    command = [sys.executable, CHILD, "hold", str(tmp_path / "s")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        pid = int(holder.stdout.readline())
        with pytest.raises(StoreLockedError, match=f"process {pid} is recording") as refusal:
            create_store(tmp_path / "s")
        assert refusal.value.pid == pid
        open_store(tmp_path / "s").close()
        holder.stdin.close()
    create_store(tmp_path / "s").close()


def test_a_store_opened_for_reading_records_nothing(tmp_path, server):
    create_store(tmp_path / "s").close()
    with open_store(tmp_path / "s") as store:
        for operation in (lambda: store.append(server().batch(1)), store.roll, store.compact):
            with pytest.raises(StoreError, match="not open for recording"):
                operation()


@pytest.mark.parametrize("open_it", [open_store, LiveReader])
def test_no_store_there(tmp_path, open_it):
    with pytest.raises(StoreNotFoundError, match="there is no store at"):
        open_it(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreNotFoundError):
        open_it(tmp_path / "file")


@pytest.mark.parametrize("open_it", [open_store, LiveReader])
def test_something_else_under_that_name(tmp_path, open_it):
    with closing(sqlite3.connect(tmp_path / "live.sqlite")) as other:
        other.execute("CREATE TABLE songs (title)")
    with pytest.raises(StoreNotFoundError, match="not a Farebox store"):
        open_it(tmp_path)
    (tmp_path / "live.sqlite").write_bytes(b"certainly not a database" * 100)
    with pytest.raises(StoreError, match="file is not a database"):
        open_it(tmp_path)
    with pytest.raises(StoreError, match="file is not a database"):
        create_store(tmp_path)


def test_a_file_is_no_folder_and_an_archive_without_its_database_is_kept(tmp_path, server):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="is a file"):
        create_store(tmp_path / "file")
    with create_store(tmp_path / "s") as store:
        store.append_archive(server().batch(5))
    (tmp_path / "s/live.sqlite").unlink()
    files = list((tmp_path / "s").rglob("*.parquet"))
    with pytest.raises(StoreError, match=r"archive but no live\.sqlite"):
        create_store(tmp_path / "s")
    assert list((tmp_path / "s").rglob("*.parquet")) == files


@pytest.mark.parametrize("open_it", [create_store, open_store, LiveReader])
def test_a_newer_schema_is_refused_politely(tmp_path, open_it):
    create_store(tmp_path / "s").close()
    database = Database(tmp_path / "s/live.sqlite")
    with database.writing() as connection:
        connection.execute(text("UPDATE schema_version SET version = 99"))
    database.close()
    with pytest.raises(StoreError, match=rf"newer Farebox \(schema 99, this one knows {NEWEST}\): upgrade"):
        open_it(tmp_path / "s")


def test_an_older_store_is_brought_up_step_by_step_and_a_failed_step_changes_nothing(tmp_path):
    create_store(tmp_path / "s").close()
    database = Database(tmp_path / "s/live.sqlite")
    steps = dict(MIGRATIONS)

    @migration(NEWEST + 1, steps)
    def add_notes(connection):
        connection.execute(text("CREATE TABLE notes (words TEXT)"))

    @migration(NEWEST + 2, steps)
    def fill_notes(connection):
        connection.execute(text("INSERT INTO notes VALUES ('half')"))
        raise RuntimeError("no")

    with pytest.raises(StoreError, match=rf"older Farebox \(schema {NEWEST}, this one reads {NEWEST + 2}\)"):
        check_version(database, steps)
    with pytest.raises(RuntimeError):
        migrate(database, steps)
    with database.reading() as connection:
        assert connection.execute(text("SELECT count(*) FROM notes")).scalar() == 0
        assert connection.execute(text("SELECT version FROM schema_version")).scalar() == NEWEST + 1
    steps[NEWEST + 2] = lambda connection: connection.execute(text("INSERT INTO notes VALUES ('whole')"))
    migrate(database, steps)
    migrate(database, steps)
    check_version(database, steps)
    with database.reading() as connection:
        assert connection.execute(text("SELECT words FROM notes")).scalars().all() == ["whole"]
    database.close()


@pytest.mark.parametrize("how", ["append", "append_archive"])
def test_telling_again_records_nothing(tmp_path, server, how):
    run = server()
    first, second = run.batch(200), run.batch(200)
    with create_store(tmp_path / "s") as store:
        record = getattr(store, how)
        record(first)
        with pytest.raises(DuplicateError, match="steps 0 to 199 of run r0 of engine e0 are already recorded"):
            record(first._replace(progress=second.progress))
        with pytest.raises(DuplicateError, match="200 steps recorded, the batch ends at 100"):
            record(first._replace(progress=Progress(100, 0, 0)))
        with pytest.raises(DuplicateError, match="would count twice"):
            record(second._replace(requests=first.requests, progress=second.progress._replace(requests=0)))
        with pytest.raises(DuplicateError, match=r"until .*, the batch ends at 1"):
            record(second._replace(progress=second.progress._replace(covered_ns=1)))
        again = second._replace(requests=first.requests)
        if how == "append":
            with pytest.raises(DuplicateError, match=f"e0/r0/.*0 steps, {first.requests.num_rows} requests"):
                record(again._replace(progress=again.progress._replace(requests=10**6)))
        assert store.read(STEPS).num_rows == 200
        record(second)
        assert store.read(STEPS).num_rows == 400


def test_a_batch_that_contradicts_itself_is_refused(tmp_path, server):
    batch = server().batch(10)
    with create_store(tmp_path / "s") as store:
        with pytest.raises(ValueError, match="progress says 5"):
            store.append(batch._replace(progress=batch.progress._replace(steps=5)))
        with pytest.raises(ValueError, match="engine_id"):
            store.append(batch._replace(shares=server("e1").batch(10).shares))
        assert store.progress("e0", "r0") is None


def test_one_engine_cannot_run_twice_at_once(tmp_path, server):
    first = server(run_id="r0")
    with create_store(tmp_path / "s") as store:
        store.append(first.batch(100))
        later = server(run_id="r1", start_ns=first.now_ns)
        with pytest.raises(OverlapError, match=r"run r1 of engine e0 .* run r0 .*--engine-id"):
            store.append(server(run_id="r1", start_ns=first.now_ns - 1).batch(10))
        with pytest.raises(OverlapError):
            store.check_overlap("e0", "r1", first.start_ns - 5, first.start_ns + 1)
        store.check_overlap("e0", "r1", first.start_ns - 5, first.start_ns)
        store.check_overlap("e0", "r1", first.start_ns + 5, first.start_ns + 5)
        store.check_overlap("e0", "r0", first.start_ns, first.now_ns)
        store.check_overlap("e1", "r1", first.start_ns, first.now_ns)
        store.append(later.batch(10))
        assert [run.run_id for run in store.runs()] == ["r0", "r1"]


def test_a_repeated_run_does_not_undo_its_end(tmp_path, server):
    run = server()
    start, batch = run.run(), run.batch(50, ended=True)
    empty = server().batch(0)
    with create_store(tmp_path / "s") as store:
        store.append(batch)
        store.append(empty._replace(run=start, progress=batch.progress))
        assert store.runs() == [batch.run]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="cannot record into"):
        create_store(tmp_path / "s")
