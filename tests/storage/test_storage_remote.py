"""An archive in an object store: on any pyarrow file system, and through the S3 protocol where a server is at hand."""

from __future__ import annotations

import stat
from types import SimpleNamespace

import pytest
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem, SubTreeFileSystem

import farebox
from farebox.errors import InputError
from farebox.events import LEDGER, REQUESTS, SHARES, STEPS
from farebox.storage import remote_files
from farebox.storage.errors import ArchiveUnreachableError, StoreError
from farebox.storage.files import open_files
from farebox.storage.layout import DAY_NS, Layout
from farebox.storage.live import LiveReader
from farebox.storage.remote_files import keep_archive_at
from farebox.storage.store import create_store, open_store

TABLES = (STEPS, SHARES, REQUESTS, LEDGER)
MINUTE = 60_000_000_000


class Bucket:
    """Objects, looked at and spoilt behind a store's back."""

    def __init__(self, url: str, filesystem: FileSystem, prefix: str) -> None:
        self.url, self.filesystem, self.prefix = url, filesystem, prefix

    def files(self) -> list[str]:
        found = self.filesystem.get_file_info(FileSelector(self.prefix, recursive=True, allow_not_found=True))
        return sorted(info.path for info in found if info.type == FileType.File)

    def write(self, path: str, content: bytes) -> None:
        with self.filesystem.open_output_stream(path) as file:
            file.write(content)

    def read(self, path: str) -> bytes:
        with self.filesystem.open_input_file(path) as file:
            return file.read()


@pytest.fixture(scope="session")
def s3_port():
    moto = pytest.importorskip("moto.server", reason="needs an S3 server for tests: make test-s3")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    yield server.get_host_and_port()[1]
    server.stop()


@pytest.fixture(params=["folders", "s3"])
def bucket(request, tmp_path, monkeypatch) -> Bucket:
    """An empty place for an archive."""
    if request.param == "s3":
        port = request.getfixturevalue("s3_port")
        name = f"b{abs(hash(request.node.name))}"
        server = f"endpoint_override=127.0.0.1%3A{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
        url = f"s3://key:secret@{name}/farebox?{server}"
        filesystem, prefix = FileSystem.from_uri(url)
        filesystem.create_dir(name)
        return Bucket(url, filesystem, prefix)
    (tmp_path / "objects").mkdir()
    filesystem = SubTreeFileSystem(str(tmp_path / "objects"), LocalFileSystem())
    monkeypatch.setattr(remote_files, "FileSystem", SimpleNamespace(from_uri=lambda url: (filesystem, "farebox")))
    return Bucket(f"s3://key:secret@{tmp_path.name}/farebox", filesystem, "farebox")


def test_a_life_in_an_object_store(tmp_path, bucket, server, said, told):
    run, path = server(gap_ns=MINUTE), tmp_path / "s"
    keep_archive_at(path, bucket.url)
    done = [run.batch(40), run.batch(40), run.batch(40), run.batch(40)]
    with create_store(path) as store:
        store.append(done[0])
        store.roll()
        store.append_archive(done[1])
        store.append(done[2])
        store.roll()
        store.append(done[3])
        assert all("/date=2026-01-0" in file for file in bucket.files())
        before = len(bucket.files())
        assert store.compact() > 0
        assert len(bucket.files()) < before
        for table in TABLES:
            assert said(table, store.read(table)) == told(table, done)
    assert not any((path / "archive").iterdir())
    with farebox.open_store(path) as reader:
        assert reader.query("SELECT count(*) AS n FROM steps").arrow()["n"].to_pylist() == [160]
        assert said(REQUESTS, reader.requests().arrow()) == told(REQUESTS, done)
        since = "SELECT count(*) AS n FROM steps WHERE date = DATE '2026-01-02'"
        assert 0 < reader.query(since).arrow()["n"][0].as_py() < 160
        reader.backup(tmp_path / "backup")
        assert reader.warnings == []
    with open_store(tmp_path / "backup") as copy:
        assert said(SHARES, copy.read(SHARES)) == told(SHARES, done)
    with create_store(path) as store:
        assert store.erase_requests("chat") > 0
        store.forget({STEPS: 1}, run.now_ns + DAY_NS)
        assert store.read(STEPS).num_rows == 0
        assert "chat" not in store.read(REQUESTS)["tenant_id"].to_pylist()
        assert said(LEDGER, store.read(LEDGER)) == told(LEDGER, done)
        assert store.warnings == []
    with LiveReader(path) as live:
        assert live.runs()


def test_damaged_and_missing_objects_are_named_without_secrets(tmp_path, bucket, server):
    run, path = server(gap_ns=MINUTE), tmp_path / "s"
    keep_archive_at(path, bucket.url)
    with create_store(path) as store:
        store.append(run.batch(100))
        store.roll()
    damaged, missing = [file for file in bucket.files() if "/steps/" in file]
    bucket.write(damaged, bucket.read(damaged)[:-30] + bytes(30))
    bucket.filesystem.delete_file(missing)
    with farebox.open_store(path) as reader, pytest.warns(UserWarning, match="was skipped"):
        assert reader.steps().arrow().num_rows == 0
        assert reader.query("SELECT count(*) AS n FROM steps").arrow()["n"].to_pylist() == [0]
        assert len(reader.warnings) == 2
        assert not any("secret" in warning for warning in reader.warnings)
        assert "its foot is not as it was written" in "".join(reader.warnings)


def test_what_a_crash_left_is_swept_and_nothing_else(tmp_path, bucket, server):
    path = tmp_path / "s"
    keep_archive_at(path, bucket.url)
    with create_store(path) as store:
        store.append_archive(server().batch(20))
    kept = bucket.files()
    left = kept[0].rpartition("/")[0] + "/123-0011223344556677.parquet"
    mine = kept[0].rpartition("/")[0] + "/notes.parquet"
    for file in (left, mine):
        bucket.write(file, b"x")
    with create_store(path) as store:
        assert store.warnings == []
    assert bucket.files() == sorted([*kept, mine])
    bucket.filesystem.delete_file(kept[0])
    bucket.write(left, b"x")
    with create_store(path) as store:
        assert "1 files of the archive are missing, and 1 that nobody knows were left there" in store.warnings[0]
    assert left in bucket.files()


def test_one_place_is_for_one_store(tmp_path, bucket, server):
    keep_archive_at(tmp_path / "a", bucket.url)
    keep_archive_at(tmp_path / "a", bucket.url)
    assert stat.S_IMODE((tmp_path / "a/archive.url").stat().st_mode) == 0o600
    with create_store(tmp_path / "a") as store:
        store.append_archive(server().batch(5))
    with pytest.raises(StoreError, match="holds the archive of a store"):
        keep_archive_at(tmp_path / "b", bucket.url)
    with pytest.raises(StoreError, match="elsewhere already"):
        keep_archive_at(tmp_path / "a", "file:///elsewhere")


def test_who_records_does_not_wait_for_an_object_store_that_is_away(tmp_path, bucket, server, said, told, monkeypatch):
    run, path = server(), tmp_path / "s"
    keep_archive_at(path, bucket.url)
    batches = [run.batch(30), run.batch(30, ended=True)]
    with create_store(path) as store:
        files = open_files(Layout(path))

        def fail(*_):
            raise OSError("no route to host")

        with monkeypatch.context() as outage:
            outage.setattr(files, "create", fail)
            store.append(batches[0])
            store.append(batches[1])
            store.maintain(run.now_ns)
            with pytest.raises(ArchiveUnreachableError, match="no route to host"):
                store.roll()
            assert bucket.files() == []
            assert said(STEPS, store.read(STEPS)) == told(STEPS, batches)
        assert store.roll() > 0
        assert said(STEPS, store.read(STEPS)) == told(STEPS, batches)


def test_a_url_that_says_nothing_is_refused(tmp_path):
    for url in ("s4://bucket", "no url", "s3://bucket/x?nonsense=1"):
        with pytest.raises(InputError, match="cannot be used"):
            keep_archive_at(tmp_path / "s", url)


def test_another_folder_of_this_machine_is_written_as_the_own_one(tmp_path, server, said, told):
    large = tmp_path / "large disk"
    keep_archive_at(tmp_path / "s", f"file://{str(large).replace(' ', '%20')}")
    batch = server().batch(20)
    with create_store(tmp_path / "s") as store:
        store.append_archive(batch)
        assert said(STEPS, store.read(STEPS)) == told(STEPS, [batch])
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in large.rglob("*.parquet"))
    assert len(list(large.rglob("*.parquet"))) == 4
