"""A disk that is full: events wait, then the oldest are dropped and counted, and recording goes on by itself."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = str(Path(__file__).with_name("storage_child.py"))


def on_a_small_disk(folder, most_rows):
    """What the child says that recorded on a disk of 8 MB which was full for a while."""
    inner = f'mount -t tmpfs -o size=8m tmpfs "$1" && exec "$2" {CHILD} fill "$1" {most_rows}'
    command = ["unshare", "-Urm", "sh", "-c", inner, "sh", str(folder), sys.executable]
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-Urm", "true"], check=False).returncode:
        pytest.skip("needs a mount namespace of its own")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    if "permission denied" in done.stderr.lower() and not done.stdout:
        pytest.skip("may not mount a small disk")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_nothing_is_lost_that_fits_into_memory(tmp_path):
    said, full_steps, kept, told, dropped, is_paid, states, is_whole = on_a_small_disk(tmp_path, 10**6)
    assert full_steps < told["steps"]
    assert kept == told
    assert dropped == {}
    assert is_paid
    assert is_whole
    assert states == ["down", "up"]
    assert [words in text for words, text in zip(("disk is full", "nothing was lost"), said, strict=True)] == [True] * 2


def test_what_does_not_fit_is_counted_and_the_bill_is_complete(tmp_path):
    said, _, kept, told, dropped, is_paid, _, is_whole = on_a_small_disk(tmp_path, 1000)
    assert dropped["steps"] > 0
    assert {name: kept[name] + dropped.get(name, 0) for name in kept} == told
    assert is_paid
    assert is_whole
    assert f"{dropped['steps']:,} steps" in said[-1]
