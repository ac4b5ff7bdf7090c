"""Live screens beside a recording process: fresh rows, each told once, and nobody waits for a lock."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from farebox.events import REQUESTS, SHARES, STEPS, Rate
from farebox.storage.errors import StoreError, StoreNotFoundError
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store

CHILD = str(Path(__file__).with_name("storage_child.py"))


def test_polling_tells_every_row_once_beside_a_writer_in_another_process(tmp_path, server):
    create_store(tmp_path / "s").close()
    writer = subprocess.Popen([sys.executable, CHILD, "record", str(tmp_path / "s"), "25"], stdout=subprocess.DEVNULL)
    steps, shares, last_step, last_share = [], [], 0, 0
    with LiveReader(tmp_path / "s") as live:
        running = True
        while running:
            running = writer.poll() is None
            new, last_step = live.steps(after_id=last_step)
            steps += new
            new, last_share = live.shares(after_id=last_share)
            shares += new
            assert len(live.runs()) <= 1
            time.sleep(0.005)
    assert writer.returncode == 0
    run = server()
    batches = [run.batch(20) for _ in range(25)]
    assert steps == [step for batch in batches for step in STEPS.from_arrow(batch.steps)]
    assert shares == [share for batch in batches for share in SHARES.from_arrow(batch.shares)]


def test_the_first_look_starts_at_an_instant_and_pages(tmp_path, server):
    run = server(gap_ns=1_000_000_000)
    batch = run.batch(300)
    steps, requests = STEPS.from_arrow(batch.steps), REQUESTS.from_arrow(batch.requests)
    with create_store(tmp_path / "s") as store, LiveReader(tmp_path / "s") as live:
        assert live.steps() == ([], 0)
        assert live.newest_ns() is None
        store.append(batch)
        since = steps[100].started_ns
        page, last = live.steps(since_ns=since, limit=150)
        assert page == steps[100:250]
        rest, last = live.steps(after_id=last)
        assert rest == steps[250:]
        assert live.steps(after_id=last) == ([], last)
        assert live.steps(since_ns=run.now_ns) == ([], last)
        assert live.requests(since_ns=since)[0] == [r for r in requests if r.finished_ns >= since]
        assert live.newest_ns() == batch.run.heartbeat_ns
        assert live.runs() == [batch.run]


def test_a_run_at_full_speed_shows_its_last_two_minutes(tmp_path, server):
    run = server(gap_ns=1_000_000_000)
    with create_store(tmp_path / "s") as store, LiveReader(tmp_path / "s") as live:
        last = 0
        for _ in range(3):
            batch = run.batch(400)
            store.append_archive(batch)
            seen, _ = live.steps()
            newest = max(step.started_ns for step in seen)
            recent = [s for s in STEPS.from_arrow(batch.steps) if s.started_ns >= run.now_ns - 119_000_000_000]
            assert seen[-len(recent) :] == recent
            assert min(step.started_ns for step in seen) >= newest - 120_000_000_000
            fresh, last = live.steps(after_id=last)
            assert fresh == seen


def test_rates_are_set_beside_a_recording_process(tmp_path):
    from farebox.storage.store import open_store

    old = Rate("gpu_type", "h100_sxm", "USD", "3.99", None, 0, None, "example")
    new = old._replace(per_gpu_hour="4.29")
    with create_store(tmp_path / "s"), open_store(tmp_path / "s") as admin, LiveReader(tmp_path / "s") as live:
        admin.put_rate(old)
        admin.put_rate(new)
        general = Rate("any", "", "USD", "1", None, 60_000_000_000, 120_000_000_000, "")
        admin.put_rate(general)
        assert live.rates() == [general, new]
        assert admin.rates() == live.rates()


def test_a_store_that_vanishes_or_is_replaced_is_told_in_plain_words(tmp_path, server):
    with create_store(tmp_path / "s") as store:
        store.append(server().batch(5))
    live = LiveReader(tmp_path / "s")
    (tmp_path / "s").rename(tmp_path / "moved")
    with pytest.raises(StoreNotFoundError, match="there is no store at"):
        live.steps()
    create_store(tmp_path / "s").close()
    with pytest.raises(StoreError, match="was replaced"):
        live.steps()
    live.close()


def test_the_live_reader_never_loads_arrow_or_pandas():
    code = (
        "import sys; from farebox.storage.live import LiveReader;"
        "print([m for m in ('pyarrow', 'pandas', 'numpy', 'duckdb') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert shown.strip() == "[]"
