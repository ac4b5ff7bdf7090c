"""Two processes on one store: one records, one watches."""

import threading
import time

from farebox.events import STEPS
from farebox.storage.live import LiveReader
from farebox.storage.store import open_store
from farebox.tui.feed import Feed

PATIENCE_S = 60


def test_a_run_and_a_screen_live_on_one_store(farebox, start_farebox, tmp_path):
    """The screen's reads never make the recorder fail, and no step is lost; the stores that are watched grow."""
    store = tmp_path / "store"
    command = ("run", "--trace", "synthetic:9", "--gpu", "h100", "--model", "llama-3-8b", "--store", "store")
    process = start_farebox(*command, "--limit", "1000", "--speed", "2")
    while not (store / "live.sqlite").exists():
        time.sleep(0.05)
    feed, seen = Feed(LiveReader(store)), []
    give_up = time.monotonic() + PATIENCE_S
    while len(set(seen)) < 9 and time.monotonic() < give_up:
        if snapshot := feed.poll():
            seen.append(snapshot.now_ns)
        time.sleep(0.1)
    assert process.poll() is None
    process.send_signal(2)
    _, err = process.communicate(timeout=60)
    assert "locked" not in err and process.returncode == 130
    assert seen == sorted(seen) and len(set(seen)) == 9
    with open_store(store) as opened:
        sequence = sorted(opened.read(STEPS, ["step_seq"])["step_seq"].to_pylist())
    assert sequence == list(range(len(sequence))) and len(sequence) > 100


def test_a_second_recorder_is_refused_with_the_pid_of_the_first(farebox, start_farebox, tmp_path):
    command = ("run", "--trace", "synthetic:9", "--gpu", "h100", "--model", "llama-3-8b", "--store", "store")
    process = start_farebox(*command, "--speed", "1")
    while not (tmp_path / "store" / "live.sqlite").exists():
        time.sleep(0.05)
    assert str(process.pid) in farebox(*command, "--engine-id", "other", check=1).stderr


def test_reports_are_read_while_another_process_records(farebox, start_farebox, tmp_path):
    command = ("run", "--trace", "synthetic:9", "--gpu", "h100", "--model", "llama-3-8b", "--store", "store")
    process = start_farebox(*command, "--speed", "3")
    while not (tmp_path / "store" / "live.sqlite").exists():
        time.sleep(0.05)
    answers = []
    readers = [threading.Thread(target=lambda: answers.append(farebox("report", "store"))) for _ in range(3)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert [answer.returncode for answer in answers] == [0, 0, 0]
    assert all("warning" not in answer.stderr for answer in answers)
    assert process.poll() is None
