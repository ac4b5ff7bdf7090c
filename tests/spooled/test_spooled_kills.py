"""Killed writers and killed collectors, at any byte and at any moment: the store has what was flushed, each once."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries
from spooled_telling import START_NS, Collector, Teller, append_lines

from farebox.storage.spool.lines import encode, segment_path, segments
from farebox.storage.spool.writer import SpoolWriter, _take

SECOND = 10**9
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 4000)),
        st.tuples(st.just("segment"), st.just(0)),
        st.tuples(st.just("look"), st.sampled_from(["well", "before", "after", "restart"])),
        st.tuples(st.just("kill"), st.just(0)),
    ),
    max_size=14,
)


class Crash(BaseException):
    """The collector is killed here."""


class Writer:
    """A process that flushes its bytes in pieces of any size, and can die after any byte."""

    def __init__(self, folder: Path, number: int):
        self.folder = folder
        teller = Teller(run_id=f"r{number}", seed=number, start_ns=START_NS + number * 1000 * SECOND)
        self.lines = [encode(event) for event in teller.life(15)]
        self.left = b"".join(self.lines)
        self.written = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.lock = _take(folder / "writer.lock")
        self.number = max(segments(folder), default=-1) + 1

    def write(self, size: int) -> None:
        piece, self.left = self.left[:size], self.left[size:]
        self.written += len(piece)
        with segment_path(self.folder, self.number).open("ab") as file:
            file.write(piece)

    def segment(self) -> None:
        """Begin a new one, as a writer does between two lines."""
        ends = [0]
        for line in self.lines:
            ends.append(ends[-1] + len(line))
        if self.written in ends and segment_path(self.folder, self.number).exists():
            self.number += 1

    def kill(self) -> list[bytes]:
        """Die; the lines that were flushed whole."""
        os.close(self.lock)
        whole, at = [], 0
        for line in self.lines:
            at += len(line)
            if at <= self.written:
                whole.append(line)
        return whole


def look(collector: Collector, how: str) -> Collector:
    """One turn; a collector that is killed in it is started anew."""
    real = collector.store.append_all

    def killed(*args, **kwargs):
        if how == "after":
            real(*args, **kwargs)
        raise Crash

    if how in ("before", "after"):
        collector.store.append_all = killed
    try:
        collector.look()
    except Crash:
        how = "restart"
    if how == "well":
        return collector
    collector.store.close()
    return Collector(collector.store.path)


@tries(25)
@given(ACTIONS)
def test_any_kills_of_either_side(actions):
    with tempfile.TemporaryDirectory() as place:
        collector = Collector(Path(place) / "s")
        folder = collector.root / "w"
        writer, flushed = Writer(folder, 0), []
        for action, value in actions:
            if action == "look":
                collector = look(collector, value)
            elif action == "kill":
                flushed += writer.kill()
                writer = Writer(folder, writer_number(flushed, writer))
            else:
                getattr(writer, action)(*([value] if action == "write" else []))
        flushed += writer.kill()
        collector.look(2)
        told = [line[9:] for line in flushed]
        assert len(collector.steps()) == sum(line.startswith(b'{"step"') for line in told)
        assert len({step[:3] for step in collector.steps()}) == len(collector.steps())
        assert len(collector.requests()) == sum(line.startswith(b'{"request"') for line in told)
        assert collector.ledger().total() == collector.walls()
        assert not folder.exists() or not segments(folder)
        assert not collector.aside("w")
        collector.store.close()


def writer_number(flushed, writer) -> int:
    """A new process has a new run."""
    return int(writer.lines[0].split(b'"run_id":"r')[1].split(b'"')[0]) + 1


COLLECT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from spooled_telling import Collector
collector = Collector(Path(sys.argv[1]))
while True:
    collector.look()
"""


def test_collectors_killed_with_sigkill(tmp_path):
    made = Collector(tmp_path / "s")
    made.store.close()
    teller = Teller()
    events = [*teller.life(1500), teller.end()]
    for delay in (0.02, 0.15):
        piece, events = events[:900], events[900:]
        append_lines(_folder(tmp_path / "s" / "spool"), piece)
        code = [sys.executable, "-c", COLLECT, str(tmp_path / "s"), str(Path(__file__).parent)]
        with subprocess.Popen(code) as child:
            deadline = time.monotonic() + 20
            while not (tmp_path / "s" / "store.lock").read_text() and time.monotonic() < deadline:
                time.sleep(0.01)
            time.sleep(delay)
            child.send_signal(signal.SIGKILL)
    append_lines(_folder(tmp_path / "s" / "spool"), events)
    last = Collector(tmp_path / "s")
    last.look(3)
    assert [step.step_seq for step in last.steps()] == list(range(1500))
    assert len(last.requests()) == teller.requests and last.ledger().total() == last.walls()
    assert not last.aside("w")
    last.store.close()


def _folder(root: Path) -> Path:
    root.mkdir(exist_ok=True)
    return root / "w"


@pytest.mark.parametrize("memory", [5_000, 200])
def test_a_collector_that_is_away_costs_nothing_up_to_the_cap(tmp_path, memory):
    collector = Collector(tmp_path / "s")
    collector.root.mkdir()
    writer = SpoolWriter(
        collector.root / "w", flush_s=60, segment_bytes=64_000, cap_bytes=512_000, memory_events=memory
    )
    teller = Teller(gpus=1)
    writer.put(teller.run())
    for _ in range(1800):
        writer.put(teller.beat(2 * SECOND))
        writer.put(teller.step())
    for _ in range(6):
        writer._flush()
        collector.look()
    writer.put(teller.end())
    writer.close()
    found = collector.look(3)
    steps = len(collector.steps())
    assert collector.ledger().total() == collector.walls()
    assert collector.source.faults["dropped"] == writer.dropped
    if memory == 5_000:
        assert steps == 1800 and not writer.dropped and "unobserved" not in str(collector.ledger("account"))
    else:
        assert 300 < steps < 1800 and steps + writer.dropped >= 1800
        assert "events lost by the writer" in found.why and ("unobserved",) in collector.ledger("account")
    collector.store.close()
