"""Starts collectors for the tests, and ends them."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "spooled"))


@pytest.fixture
def collecting(tmp_path):
    from collect_process import Process

    running: list[Process] = []

    def start(text: str, **environment: str) -> Process:
        running.append(Process(tmp_path, text, **environment))
        return running[-1]

    yield start
    for one in running:
        one.child.kill()
        one.child.wait()


@pytest.fixture
def collector(tmp_path):
    from spooled_telling import Collector

    made = Collector(tmp_path / "s")
    yield made
    made.store.close()
