"""`farebox serve` as a process: what it serves is recorded, billed and ended well."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from openai import APIConnectionError, OpenAI

from farebox.cli.app import app
from farebox.collector.background import BackgroundRecorder
from farebox.collector.listening import listen
from farebox.errors import FareboxError
from farebox.events import API_KEYS, LEDGER, REQUESTS, STEPS, ApiKey, hash_key
from farebox.planning.comparison import compare
from farebox.planning.scenario import Scenario
from farebox.planning.traffic import read_recorded
from farebox.storage.store import create_store, open_store

FAREBOX = [sys.executable, "-m", "farebox.cli"]
KEY = "sk-chat-0123456789"
Start = Callable[..., tuple[subprocess.Popen[str], OpenAI]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `farebox serve` on a free port; the process and a client for it."""
    started: list[subprocess.Popen[str]] = []

    def call(*arguments: str) -> tuple[subprocess.Popen[str], OpenAI]:
        command = [*FAREBOX, "serve", "--port", "0", "--store", "store", "--model", "llama-3.2-1b", *arguments]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=os.environ)
        started.append(process)
        assert process.stderr is not None
        told = process.stderr.readline()
        address = re.search(r"http://\S+", told)
        assert address, told + process.stderr.read()
        return process, OpenAI(base_url=address[0], api_key=KEY, max_retries=0)

    yield call
    for process in started:
        process.kill()
        process.communicate()


def stop(process: subprocess.Popen[str], signum: int = signal.SIGTERM) -> None:
    process.send_signal(signum)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 0, told
    assert "Traceback" not in told


def test_a_server_that_drains_lets_its_riders_end_and_bills_their_tenant(start, tmp_path):
    with create_store(tmp_path / "store") as store:
        store.put(API_KEYS, ApiKey(hash_key(KEY), "chat", KEY[-4:], 0, None))
    process, client = start("--rate", "4.29", "--drain", "20")
    client.completions.create(model="llama-3.2-1b", prompt="Who pays?", max_tokens=5)
    stream = client.completions.create(model="llama-3.2-1b", prompt="Who pays?", max_tokens=300, stream=True)
    next(iter(stream))
    process.send_signal(signal.SIGTERM)
    assert len(list(stream)) == 299
    stop(process)
    with open_store(tmp_path / "store") as store:
        (run,) = store.runs()
        steps, requests, ledger = (store.read(table).to_pylist() for table in (STEPS, REQUESTS, LEDGER))
        assert [rate.per_gpu_hour for rate in store.rates()] == ["4.29"]
        assert compare(store, read_recorded(store), Scenario()).baseline.is_exact
    told = sorted((r["tenant_id"], r["output_tokens"], r["finish_reason"]) for r in requests)
    assert told == [("chat", 5, "length"), ("chat", 300, "length")]
    assert [step["step_seq"] for step in steps] == list(range(305))
    assert sum(line["gpu_ns"] for line in ledger) == run.ended_ns - run.started_ns
    busy = sum(line["gpu_ns"] for line in ledger if line["account"] == "tenant")
    assert busy == sum(step["duration_ns"] for step in steps)


def test_a_server_that_is_stopped_puts_its_riders_off_and_keeps_the_record(start, tmp_path):
    process, client = start("--drain", "0")
    stream = client.completions.create(model="llama-3.2-1b", prompt="a", max_tokens=100_000, stream=True)
    next(iter(stream))
    stop(process, signal.SIGINT)
    assert [event.choices[0].finish_reason for event in stream][-1] == "abort"
    with open_store(tmp_path / "store") as store:
        (request,) = store.read(REQUESTS).to_pylist()
        (run,) = store.runs()
    assert (request["finish_reason"], request["output_tokens"] > 0) == ("abort", True)
    assert run.ended_ns is not None
    with pytest.raises(APIConnectionError):
        client.models.list()


def test_a_port_that_is_taken_is_one_clear_line():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(FareboxError, match=f"cannot listen on 127.0.0.1:{port}: Address already in use"):
            listen("127.0.0.1", port)


def test_without_its_extra_serve_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "farebox.collector.serving", raising=False)
    monkeypatch.delattr("farebox.collector.serving", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = CliRunner().invoke(app, ["serve"], prog_name="farebox")
    assert done.exit_code == 1
    assert "farebox serve needs uvicorn: pip install 'farebox[serve]'" in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_context_longer_than_the_kv_cache_is_refused(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["serve", "--max-model-len", "999999999"], prog_name="farebox")
    assert done.exit_code == 2
    assert "--max-model-len 999999999: the KV cache of 1×h100_sxm holds" in done.output


class Kept:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def run(self, run: object) -> None:
        self.told.append(run)

    step = request = run


def test_a_background_recorder_tells_in_order_and_between_its_batches():
    sink, stored = Kept(), []
    recorder = BackgroundRecorder(sink, lambda: stored.append(len(sink.told)))
    for number in range(100):
        recorder.run(number)
        if number % 10 == 0:
            recorder.beat()
    recorder.close()
    assert sink.told == list(range(100))
    assert stored == sorted(stored)
    assert stored[-1] == 100


def test_what_goes_wrong_while_recording_is_raised_at_the_next_beat():
    def full() -> None:
        raise OSError("no space left on device")

    recorder = BackgroundRecorder(Kept(), full)
    recorder.beat()
    with pytest.raises(OSError, match="no space"):
        for _ in range(10_000):
            recorder.beat()
    with pytest.raises(OSError, match="no space"):
        recorder.close()


def test_a_prompt_that_begins_like_one_before_is_served_from_the_cache(start, tmp_path):
    process, client = start()
    shared = "You are a helpful bus driver. " * 40
    for end in ("first", "second"):
        client.completions.create(model="llama-3.2-1b", prompt=shared + end, max_tokens=3)
    metrics = client.get("/../metrics", cast_to=str)
    stop(process)
    with open_store(tmp_path / "store") as store:
        first, second = sorted(store.read(REQUESTS).to_pylist(), key=lambda row: row["arrived_ns"])
    assert first["cached_tokens"] == 0 and second["cached_tokens"] == second["prompt_tokens"] // 16 * 16 > 200
    assert "vllm:prefix_cache_hits_total" in metrics and 'enable_prefix_caching="True"' in metrics
