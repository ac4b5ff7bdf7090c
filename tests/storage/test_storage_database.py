"""The hot store's database: what a power cut may undo, what readers may not do, and its log's size."""

import os

import pytest
from sqlalchemy import text

from farebox.events import STEPS
from farebox.storage import migrations
from farebox.storage import store as store_module
from farebox.storage.database import Database
from farebox.storage.errors import StoreError
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store, open_store


def test_a_transaction_is_flushed_to_disk_when_files_are_removed_after_it(tmp_path):
    create_store(tmp_path / "s").close()
    database = Database(tmp_path / "s/live.sqlite")
    for durable, level in ((True, 2), (False, 1)):
        with database.writing(durable=durable) as connection:
            assert connection.execute(text("PRAGMA synchronous")).scalar() == level
    database.close()


def test_a_failed_transaction_leaves_nothing_and_frees_the_lock(tmp_path):
    create_store(tmp_path / "s").close()
    database = Database(tmp_path / "s/live.sqlite")
    with pytest.raises(RuntimeError), database.writing() as connection:
        connection.execute(text("DELETE FROM schema_version"))
        raise RuntimeError
    with database.writing() as connection:
        assert connection.execute(text("SELECT count(*) FROM schema_version")).scalar() == 1
    database.close()


def test_a_screens_connection_cannot_write(tmp_path):
    create_store(tmp_path / "s").close()
    database = Database(tmp_path / "s/live.sqlite", query_only=True)
    with pytest.raises(StoreError, match="cannot write"), database.writing() as connection:
        connection.execute(text("DELETE FROM schema_version"))
    database.close()


def test_a_long_log_is_given_back(tmp_path, server, monkeypatch):
    monkeypatch.setattr(store_module, "_WAL_LIMIT", 100_000)
    run = server()
    with create_store(tmp_path / "s") as store, LiveReader(tmp_path / "s") as live:
        store.append(run.batch(300))
        live.steps()
        assert (tmp_path / "s/live.sqlite-wal").stat().st_size > 100_000
        store.maintain(run.now_ns)
        assert (tmp_path / "s/live.sqlite-wal").stat().st_size == 0
        assert len(live.steps()[0]) == 300


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_store_on_read_only_media_is_readable(tmp_path, server):
    with create_store(tmp_path / "s") as store:
        store.append(server().batch(30))
        store.roll()
    (tmp_path / "s/live.sqlite").chmod(0o400)
    (tmp_path / "s").chmod(0o500)
    try:
        with open_store(tmp_path / "s") as store, LiveReader(tmp_path / "s") as live:
            assert store.read(STEPS).num_rows == 30
            assert len(live.steps()[0]) == 30
    finally:
        (tmp_path / "s").chmod(0o700)


def test_a_store_in_the_making_is_not_there_yet(tmp_path, monkeypatch):
    """A reader that comes while a store is made is told that there is none, not that it is broken."""
    seen: list[bool] = []
    made = migrations.migrate

    def look_first(database):
        seen.append((tmp_path / "live.sqlite").exists())
        made(database)

    monkeypatch.setattr(migrations, "migrate", look_first)
    create_store(tmp_path).close()
    assert seen == [False, True]
