"""A real llama.cpp server with a real model, scraped under load: opt-in, by `make test-llamacpp`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

import pytest

from farebox.collector.scrape.fetch import Target
from farebox.collector.scrape.setup import Setup
from farebox.collector.scrape.source import ScrapeSource
from farebox.collector.scraped import ScrapeRecorder
from farebox.events import LEDGER
from farebox.storage.store import create_store

PYTHON = os.environ.get("FAREBOX_LLAMACPP")
pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs a real llama.cpp server: make test-llamacpp")
SERVER = Path(__file__).parents[1] / "proxy" / "llamacpp_server.py"
REQUESTS, TOKENS = 6, 24


@pytest.fixture(scope="module")
def url():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    server = subprocess.Popen([PYTHON or "", str(SERVER), str(port), "4"], stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                with urllib.request.urlopen(f"{address}/metrics") as answer:
                    answer.read()
                break
            except OSError:
                time.sleep(0.5)
        yield address
    finally:
        server.kill()
        server.wait()


def ask(url: str, number: int) -> dict:
    prompt = "Who pays for the seats? " + "Tell me more. " * (number % 3)
    body = json.dumps({"model": "gemma3-270m", "prompt": prompt, "max_tokens": TOKENS, "ignore_eos": True}).encode()
    request = urllib.request.Request(f"{url}/v1/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["usage"]


def test_the_books_are_what_the_server_and_its_answers_counted(url: str, tmp_path: Path):
    source = ScrapeSource(Target(url), Setup("llama", gpu="h100", gpus=1), period_s=1)
    looks = [source.poll(time.time_ns(), time.monotonic_ns())]
    answers: list[dict] = []
    asking = [threading.Thread(target=lambda n=n: answers.append(ask(url, n))) for n in range(REQUESTS)]
    for thread in asking:
        thread.start()
    while any(thread.is_alive() for thread in asking):
        time.sleep(1)
        looks.append(source.poll(time.time_ns(), time.monotonic_ns()))
    time.sleep(1)
    looks.append(source.poll(time.time_ns(), time.monotonic_ns()))
    source.close()
    with create_store(tmp_path / "store") as store:
        recorder = ScrapeRecorder(store)
        for look in looks:
            recorder.record(look)
        run = store.runs()[0]
        ledger = store.read(LEDGER).to_pylist()
    booked = {name: sum(line[f"{name}_tokens"] for line in ledger) for name in ("prompt", "cached", "output")}
    assert booked["prompt"] == sum(answer["prompt_tokens"] for answer in answers)
    assert booked["cached"] == sum(answer["prompt_tokens_details"]["cached_tokens"] for answer in answers)
    assert booked["output"] == sum(answer["completion_tokens"] for answer in answers) == REQUESTS * TOKENS
    assert sum(line["gpu_ns"] for line in ledger) == run.wall_end_ns - run.started_ns
    assert "gemma" in run.model
    assert run.max_num_seqs == 4
    assert any(look.interval and look.interval.kv_ppm for look in looks)
