"""A store survives being killed at any moment: nothing is lost, nothing counts twice, nothing is left behind."""

import errno
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from farebox.events import LEDGER, REQUESTS, SHARES, STEPS
from farebox.storage.archive import sweep
from farebox.storage.database import Database
from farebox.storage.errors import OverlapError, StoreFullError
from farebox.storage.layout import Layout
from farebox.storage.local_files import _SyncedFile
from farebox.storage.manifest import counted_paths
from farebox.storage.store import create_store, open_store

CHILD = str(Path(__file__).with_name("storage_child.py"))
TABLES = (STEPS, SHARES, REQUESTS, LEDGER)


def files_on_disk(path):
    return {file.relative_to(path).as_posix() for file in (path / "archive").rglob("*") if file.is_file()}


def files_that_count(path):
    database = Database(Layout(path).database)
    with database.reading() as connection:
        counted = counted_paths(connection)
    database.close()
    return counted


def lean(batch):
    """A batch of two tables: every table goes the same way, and each adds moments to die at."""
    return batch._replace(steps=STEPS.schema.empty_table(), requests=REQUESTS.schema.empty_table())


def prepared(path, server):
    """A store with several files per table, archived copies and rows that only hot has."""
    done = [lean(server.batch(20)) for _ in range(4)]
    with create_store(path) as store:
        store.append_archive(done[0])
        store.append(done[1])
        store.roll()
        store.append_archive(done[2])
        store.append(done[3])
    return done


@pytest.mark.parametrize(("operation", "ended"), [("append", True), ("append_archive", False), ("compact", False)])
def test_killed_at_any_moment(tmp_path, server, said, told, operation, ended):
    """The end of a run is rolled with its last batch, and `append_archive` rolls what is hot first."""
    run = server()
    done = prepared(tmp_path / "s", run)
    batch = lean(run.batch(20, ended=ended))
    (tmp_path / "batch").write_bytes(pickle.dumps(batch))
    command = [sys.executable, CHILD, "crash", str(tmp_path / "s"), operation, str(tmp_path / "batch")]
    outcomes = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout.splitlines()
    codes = [int(line.rsplit(" ", 1)[1]) for line in outcomes]
    assert codes == [9] * (len(codes) - 1) + [0]
    assert len(codes) > 10
    shares = {recorded: told(SHARES, [*done, batch][: len(done) + recorded]) for recorded in (False, True)}
    lines = told(LEDGER, [*done, batch])
    for line in outcomes:
        path = Path(line.rsplit(" ", 1)[0])
        with open_store(path) as reader:  # before anybody cleans up
            recorded = reader.progress("e0", "r0") == batch.progress
            assert said(SHARES, reader.read(SHARES)) == shares[recorded], path
        with create_store(path) as store:
            assert files_on_disk(path) == files_that_count(path), path
            if not recorded:
                store.append_archive(batch)
            assert said(LEDGER, store.read(LEDGER)) == lines, path
            assert store.warnings == []


def test_a_writer_killed_in_the_middle_leaves_whole_batches_and_no_lock(tmp_path, server, said, told):
    command = [sys.executable, CHILD, "record", str(tmp_path / "s"), "10000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        safe = 0
        while safe < 25:
            safe = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
    with create_store(tmp_path / "s") as store:
        progress = store.progress("e0", "r0")
        assert progress is not None
        assert progress.steps % 20 == 0
        assert progress.steps >= safe * 20
        run = server()
        done = [run.batch(20) for _ in range(progress.steps // 20)]
        for table in TABLES:
            assert said(table, store.read(table)) == told(table, done)


def test_only_our_own_leftovers_are_swept(tmp_path, server):
    run = server()
    with create_store(tmp_path / "s") as store:
        store.append_archive(run.batch(20))
    folder = next((tmp_path / "s/archive/steps").iterdir())
    leftovers = [folder / ".tmp-123-0011223344556677", folder / "123-0011223344556677.parquet"]
    mine = folder / "my-notes.parquet"
    for file in [*leftovers, mine]:
        file.write_bytes(b"x")
    layout = Layout(tmp_path / "s")
    database = Database(layout.database)
    removed = sweep(layout, database, [])
    database.close()
    assert sorted(removed) == sorted(file.relative_to(tmp_path / "s").as_posix() for file in leftovers)
    assert mine.exists()
    assert not any(file.exists() for file in leftovers)


def test_a_failed_batch_leaves_no_file(tmp_path, server):
    with create_store(tmp_path / "s") as store:
        store.append_archive(server(run_id="r0").batch(20))
        before = files_on_disk(tmp_path / "s")
        with pytest.raises(OverlapError):
            store.append_archive(server(run_id="r1").batch(20))
        assert files_on_disk(tmp_path / "s") == before


def test_merged_files_outlive_the_loss_of_the_log(tmp_path, server, said, told):
    """The files that were merged are gone, so what says so must not be in the log alone."""
    run = server()
    done = [run.batch(20), run.batch(20)]
    with create_store(tmp_path / "s") as store:
        for batch in done:
            store.append_archive(batch)
        assert store.compact()
        shutil.copytree(tmp_path / "s", tmp_path / "copy")
    (tmp_path / "copy/live.sqlite-wal").unlink(missing_ok=True)
    with create_store(tmp_path / "copy") as copy:
        for table in TABLES:
            assert said(table, copy.read(table)) == told(table, done)
        assert copy.warnings == []


def test_a_file_that_could_not_be_written_leaves_nothing_on_a_full_disk(tmp_path, server, monkeypatch):
    with create_store(tmp_path / "s") as store:
        with monkeypatch.context() as full:
            full.setattr(_SyncedFile, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
            with pytest.raises(StoreFullError):
                store.append_archive(server().batch(20))
        assert files_on_disk(tmp_path / "s") == set()
