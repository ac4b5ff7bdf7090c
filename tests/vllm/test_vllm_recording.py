"""From the entry point to the spool, in a process of its own: every way to end, and nowhere to write."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from farebox_vllm.recorder import start
from farebox_vllm.settings import Settings
from vllm_fake import FakeRequest

from farebox.storage.spool.reader import SpoolReader

CHILD = str(Path(__file__).with_name("vllm_child.py"))


def child(fake_vllm: Path, spool: Path | None, seconds: float, ends: str, **more: str) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FAREBOX_")}
    environment |= {"FAREBOX_ENGINE": "e", "PYTHONWARNINGS": "error"} | more
    if spool is not None:
        environment["FAREBOX_SPOOL"] = str(spool)
    command = [sys.executable, CHILD, str(fake_vllm), str(seconds), ends]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def read(spool: Path):
    (folder,) = spool.iterdir()
    reader = SpoolReader(folder)
    events = [event.value for event in reader.read()]
    assert reader.damaged == 0
    return events


@pytest.mark.parametrize("ends", ["exit", "shutdown", "fork"])
def test_a_run_is_told_from_its_start_to_its_end(fake_vllm, tmp_path, ends):
    process = child(fake_vllm, tmp_path / "spool", 1.3, ends)
    printed, complaints = process.communicate(timeout=60)
    assert process.returncode == 0 and complaints == ""
    events = read(tmp_path / "spool")
    first, last = events[0]["run"], events[-1]["run"]
    assert (first["engine_id"], first["model"], first["gpu_type"]) == ("e", "tiny", "NVIDIA H100 80GB HBM3")
    assert (first["gpus"], first["gpu_uuids"], first["weights"]) == (1, ["GPU-0"], "bf16")
    assert (first["kv_blocks"], first["block_bytes"], first["max_num_seqs"]) == (999, 64, 8)
    assert last == first | {"ended_ns": last["ended_ns"]}
    steps = [event["step"] for event in events if "step" in event]
    assert len(steps) == len(printed.split())
    assert first["started_ns"] + first["load_ns"] <= steps[0]["started_ns"]
    assert steps[-1]["started_ns"] + steps[-1]["duration_ns"] <= last["ended_ns"]
    assert any("beat" in event for event in events)
    told = [event["request"]["finish_reason"] for event in events if "request" in event]
    assert set(told) == {"length", "abort"} and told.count("abort") <= 6


def test_a_killed_engine_loses_at_most_the_last_quarter_of_a_second(fake_vllm, tmp_path):
    process = child(fake_vllm, tmp_path / "spool", 60, "exit")
    assert process.stdout
    seen = [int(process.stdout.readline()) for _ in range(400)]
    process.send_signal(signal.SIGKILL)
    seen += [int(line) for line in process.stdout.read().split()]
    process.communicate()
    steps = [event["step"] for event in read(tmp_path / "spool") if "step" in event]
    assert [step["step_seq"] for step in steps] == list(range(len(steps)))
    lost_ns = seen[-1] - (steps[-1]["started_ns"] + steps[-1]["duration_ns"])
    assert lost_ns < 0.25e9 + 0.5e9, "a flush every 250 ms, and what a busy machine adds"


def test_two_engines_have_folders_of_their_own_that_nobody_else_can_read(fake_vllm, tmp_path):
    spool = tmp_path / "spool"
    processes = [child(fake_vllm, spool, 0.3, "exit") for _ in range(2)]
    assert [process.communicate(timeout=60)[1] for process in processes] == ["", ""]
    folders = sorted(spool.iterdir())
    assert len(folders) == 2
    assert {path.stat().st_mode & 0o777 for path in (spool, *folders)} == {0o700}
    assert {path.stat().st_mode & 0o777 for folder in folders for path in folder.iterdir()} == {0o600}
    assert all(re.fullmatch(r"e-\d{8}T\d{6}Z-\d+-[0-9a-f]{6}", folder.name) for folder in folders)


@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        ({"FAREBOX_SPOOL": "/proc/nowhere"}, "the spool under /proc/nowhere cannot be written"),
        ({"FAREBOX_SPOOL": "/tmp/x", "FAREBOX_SPOOL_CAP_MB": "lots"}, "FAREBOX_SPOOL_CAP_MB is 'lots'"),
        ({}, ""),
    ],
)
def test_without_a_spool_vllm_goes_on_and_says_why_once(fake_vllm, environment, complaint):
    process = child(fake_vllm, None, 0.2, "shutdown", **environment)
    printed, complaints = process.communicate(timeout=60)
    assert process.returncode == 0 and len(printed.split()) > 5
    assert complaint in complaints and len(complaints.splitlines()) == bool(complaint)


def test_a_vllm_of_another_make_is_left_alone(fake_vllm, tmp_path):
    """Nothing that the plugin asks a scheduler for is there, and EngineCore has no end to wait for."""
    core, scheduler = tmp_path / "vllm/v1/engine/core.py", tmp_path / "vllm/v1/core/sched/scheduler.py"
    for path in (core, scheduler):
        path.parent.mkdir(parents=True)
    scheduler.write_text("from vllm_fake import FakeScheduler as Scheduler\n")
    core.write_text("class EngineCore:\n    def __init__(self, scheduler): pass\n")
    process = child(tmp_path, tmp_path / "spool", 0.2, "exit")
    printed, complaints = process.communicate(timeout=60)
    assert process.returncode == 0 and len(printed.split()) > 5
    assert complaints.count("is not as the plugin knows it") == 2


def test_an_hour_without_a_collector_fits_and_what_does_not_is_counted(fake_vllm, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(fake_vllm))
    from vllm.v1.core.sched.scheduler import Scheduler  # pyright: ignore

    monkeypatch.setattr("farebox_vllm.recorder.MEMORY_EVENTS", 2)
    scheduler = Scheduler(budget=100, blocks=1000)
    recorder = start(scheduler, Settings(tmp_path / "spool", "e", None, None, None, None, cap_bytes=32 * 2**20))
    assert recorder is not None
    for number in range(8):
        request = FakeRequest(f"r{number}", 20, 200)
        request.trace_headers = {"x-tenant": f"tenant-{number}"}
        scheduler.add_request(request)
    for _ in range(150):
        out = scheduler.schedule()
        scheduler.update_from_output(out, scheduler.run_model(out))
    folder = recorder.folder
    assert _until(lambda: sum("step" in event.value for event in SpoolReader(folder).read()) == 150)
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert 3600 * 50 * size / 150 < 2**30, "an hour of 50 steps a second of 8 tenants"
    for _ in range(40):
        recorder._writer.put({"padding": "x" * 2**20})
    _until(lambda: recorder._writer.dropped)
    reader = SpoolReader(folder)
    kept = [event.value for event in reader.read()]
    reader.remove_before(reader.place)
    recorder.close()
    kept += [event.value for event in reader.read()]
    dropped = sum(event.get("dropped", 0) for event in kept)
    assert dropped > 0 and sum("padding" in event for event in kept) + dropped >= 40
    assert "ended_ns" in kept[-1]["run"]


def _until(found, timeout_s=20.0):
    deadline = time.monotonic() + timeout_s
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return True
