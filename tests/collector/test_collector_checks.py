"""The doctor's checks of clock and disk, with faults that a test machine does not have."""

from types import SimpleNamespace

import psutil
import pytest

from farebox.collector.checks import clock, money, place
from farebox.collector.recorder import Recorder
from farebox.collector.unmetered import unmetered_run
from farebox.storage.store import create_store

NOW_NS = 1_800_000_000_000_000_000


@pytest.mark.parametrize(
    ("now_ns", "newest_ns", "synced", "level", "words"),
    [
        (0, None, True, "bad", "1970-01-01"),
        (NOW_NS, NOW_NS + 3600 * 10**9, True, "bad", "3600 s ahead"),
        (NOW_NS, NOW_NS + 10**9, True, "ok", "time server"),
        (NOW_NS, None, False, "note", "no time server"),
        (NOW_NS, None, None, "ok", "2027-01-15"),
    ],
)
def test_the_clock(monkeypatch, now_ns, newest_ns, synced, level, words):
    monkeypatch.setattr(clock, "is_synced", lambda: synced)
    [found] = clock.check_clock(now_ns, newest_ns)
    assert found.level == level and words in found.says


@pytest.mark.parametrize(
    ("kind", "level"), [("nfs4", "bad"), ("cifs", "bad"), ("fuse.sshfs", "bad"), ("ext4", "ok"), ("tmpfs", "ok")]
)
def test_a_store_on_a_network_file_system_is_bad(monkeypatch, tmp_path, kind, level):
    mounts = [SimpleNamespace(mountpoint="/", fstype="ext4"), SimpleNamespace(mountpoint=str(tmp_path), fstype=kind)]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: mounts)
    (tmp_path / "s").mkdir()
    found = {check.name: check for check in place.check_place(tmp_path / "s")}
    assert found["disk"].level == level and kind in found["disk"].says


def test_an_archive_on_a_network_file_system_is_no_fault_where_a_server_keeps_recent_rows(monkeypatch, tmp_path):
    mounts = [SimpleNamespace(mountpoint="/", fstype="nfs4")]
    monkeypatch.setattr(psutil, "disk_partitions", lambda all: mounts)
    (tmp_path / "database.url").write_text("postgresql+psycopg://db/farebox")
    assert {check.name for check in place.check_place(tmp_path)} == {"writer", "room"}


def test_a_log_that_grew_and_a_disk_that_fills_are_bad(monkeypatch, tmp_path):
    with (tmp_path / "live.sqlite-wal").open("wb") as log:
        log.truncate(100 * 2**20)
    monkeypatch.setattr(place.shutil, "disk_usage", lambda path: SimpleNamespace(free=500 * 2**20))
    found = {check.name: check for check in place.check_place(tmp_path)}
    assert (found["log"].level, found["room"].level) == ("bad", "bad")
    assert "100 MiB" in found["log"].says and "500 MiB" in found["room"].says


def test_a_store_that_can_only_be_read_says_what_does_not_work(monkeypatch, tmp_path):
    monkeypatch.setattr(place.os, "access", lambda path, mode: not mode & place.os.W_OK)
    found = {check.name: check for check in place.check_place(tmp_path)}
    assert (found["writer"].level, "nothing be recorded" in found["writer"].says) == ("note", True)


def test_advice_names_the_store_and_what_its_runs_lack(tmp_path):
    with create_store(tmp_path / "my store") as store:
        gateway = unmetered_run("litellm", "r1", "gateway", NOW_NS)
        record(store, gateway)
        assert (money.check_rates(store).level, money.check_capacity(store).level) == ("note", "note")
        record(store, gateway._replace(engine_id="chat", host="gpu-7", gpu_type="h100_sxm", gpus=1))
        rates, capacity = money.check_rates(store), money.check_capacity(store)
    assert rates.level == "bad"
    assert f"`farebox rates add '{tmp_path}/my store' --gpu-type h100_sxm --price PRICE`" in (rates.advice or "")
    assert "gpu-7 --gpus NUMBER --type h100_sxm" in (capacity.advice or "")


def record(store, run):
    """Record a run without any event."""
    recorder = Recorder(store, bulk=False)
    recorder.run(run)
    recorder.flush()
