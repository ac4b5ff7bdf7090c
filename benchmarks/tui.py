"""What the screens cost: first paint, memory, processor time per refresh, and a frame, each beside its limit.

    python benchmarks/tui.py [VLLMSTAT] [--page FILE] [--seconds 30] [--million 10]

VLLMSTAT is the program of the best other Textual screen for vLLM, in an environment of its own
(`pip install vllmstat==0.9.1`). It and `farebox top` watch the same metrics page (FILE: one captured from vLLM) side by
side at 1 Hz, each in a terminal of 120×40; what their helper processes take counts. The server multiplies FILE's
counters with every second. Memory and polls are measured on a store of so many million archived steps, with a run on
top, and in a small one. Processor seconds; resident memory, of which file pages are told apart. Exits with 1 when a
limit is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import tempfile
import termios
import threading
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import takewhile
from pathlib import Path
from statistics import median

import first_paint
import psutil
import report

import storage
from farebox.collector.embedded import EmbeddedEngine, record
from farebox.engine.workloads import demo
from farebox.roofline import Replica, gpu, model
from farebox.storage.layout import DAY_NS
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store, open_store
from farebox.tui.app import FareboxApp
from farebox.tui.feed import Feed
from farebox.tui.replay import ReplayClock, ReplayReader

S = 10**9
MIB = 1 << 20
END_NS = report.START_NS + report.DAYS * DAY_NS
LEDGER_CELLS = 3_000_000
SETTLE_S = 20
GROWING = re.compile(r"^(\S+(?:_total|_sum|_count|_bucket)(?:\{.*\})?) (\S+)$", re.MULTILINE)
PAGE = Path(os.environ.get("FAREBOX_SHARED", "../shared")) / "data" / "vllm" / "metrics_mid.txt"


@contextmanager
def terminal(*command: str) -> Generator[tuple[psutil.Process, int]]:
    """A program in a terminal of 120×40 that somebody reads; its process, and what its keys are written to."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.execvp(command[0], command)
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    threading.Thread(target=_drain, args=(master,), daemon=True).start()
    process = psutil.Process(pid)
    try:
        yield process, master
    finally:
        process.terminate()
        process.wait(10)
        os.close(master)


def _drain(master: int) -> None:
    try:
        while os.read(master, 1 << 16):
            pass
    except OSError:
        return


def used(process: psutil.Process) -> float:
    """Processor seconds that a process and those it started have taken."""
    times = [p.cpu_times() for p in (process, *process.children(recursive=True))]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


@contextmanager
def moving_page(file: Path) -> Generator[tuple[str, Counter[str]]]:
    """The address of a server whose page is the file's, with every counter times the seconds since it started; and how
    often each program has read it.
    """
    text, start, readings = file.read_text("utf-8"), time.monotonic(), Counter[str]()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            since = int(time.monotonic() - start) + 1
            page = GROWING.sub(lambda found: f"{found[1]} {float(found[2]) * since!r}", text).encode()
            is_page = self.path == "/metrics"
            readings[self.headers.get("User-Agent", "")] += is_page
            self.send_response(200 if is_page else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(page) if is_page else 0))
            self.end_headers()
            self.wfile.write(page if is_page else b"")

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the screens are measured, not the server."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", readings
    finally:
        server.shutdown()


def per_refresh(vllmstat: str, file: Path, seconds: int) -> tuple[float, float]:
    """Processor seconds per refresh, at one a second, of Farebox and of vllmstat on the same page."""
    options = ("--interval", "1", "--gpu", "h100", "--rate", "4.29", "--page", "live")
    with (
        moving_page(file) as (url, readings),
        terminal(sys.executable, "-m", "farebox.cli", "top", url, *options) as (ours, _),
        terminal(vllmstat, "-u", url, "-i", "1", "--no-gpu") as (theirs, _),
    ):
        time.sleep(SETTLE_S)
        before = used(ours), used(theirs)
        readings.clear()
        time.sleep(seconds)
        took = used(ours) - before[0], used(theirs) - before[1]
        mine, others = sorted(readings, key=lambda agent: "farebox" not in agent)
        return took[0] / readings[mine], took[1] / readings[others]


def memory(store: Path, page: str) -> tuple[float, float]:
    """Resident MiB of `farebox top` on a page that is filled, and how much of it are file pages, shared with others."""
    with terminal(sys.executable, "-m", "farebox.cli", "top", str(store), "--page", page) as (process, _):
        before, now = -1.0, used(process)
        while now - before > 0.1:
            time.sleep(2)
            before, now = now, used(process)
        held = process.memory_info()
        return held.rss / MIB, held.shared / MIB


def record_run(store: Path) -> None:
    """Two minutes of the demo, told live, after everything else."""
    engine = EmbeddedEngine(Replica(gpu("h100"), model("llama-3-8b")), max_num_seqs=64, fast_cap=8, engine_id="demo")
    arrivals = takewhile(lambda arrival: arrival.arrived_ns < END_NS + 100 * S, demo.generate(END_NS))
    with create_store(store) as opened:
        record(engine.config(["demo"]), arrivals, opened)


def poll_ms(store: Path) -> float:
    """Processor milliseconds until somebody who looks for the first time knows the last two minutes."""
    with LiveReader(store) as reader:
        Feed(reader).poll()
        start = time.process_time()
        for _ in range(5):
            Feed(reader).poll()
        return (time.process_time() - start) / 5 * 1000


async def frame_ms(store: Path) -> float:
    """Processor milliseconds from a new snapshot to the picture of the Live page at 200×60, in the middle of many."""
    clock = [END_NS + 60 * S]
    past = ReplayClock(clock[0], 1, lambda: clock[0])
    opened = open_store(store)
    feed = Feed(ReplayReader(opened, past, "demo"), wall_ns=past.now_ns, steady_ns=past.now_ns)
    app, took = FareboxApp(lambda: LiveReader(store)), list[float]()
    async with app.run_test(size=(200, 60)) as pilot:
        await pilot.pause(1)
        app._stopping = True  # or the worker would show the store's newest snapshot in between
        app._wake.set()
        for _ in range(30):
            clock[0] += S
            app.newest = feed.poll()
            before = app.screen._compositor.render_strips()
            start = time.process_time()
            app._show_front()
            await pilot.pause()
            while app.screen._dirty_widgets:
                await asyncio.sleep(0)
            took.append(1000 * (time.process_time() - start))
            assert before != app.screen._compositor.render_strips(), "the picture did not change"
    opened.close()
    return median(took)


class Checks:
    """Prints figures beside their limits, and remembers the misses."""

    def __init__(self) -> None:
        self.misses = 0

    def most(self, name: str, value: float, limit: float, unit: str) -> None:
        """A figure that may be `limit` at most."""
        self.misses += value > limit
        print(f"{name:<72} {value:8.2f} {unit:<4} ≤ {limit:g}{'   MISSED' if value > limit else ''}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("vllmstat", nargs="?")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--million", type=float, default=10)
    asked, checks = parser.parse_args(arguments), Checks()
    bare, ours = first_paint.least(5)
    checks.most(f"first paint: {ours * 1000:.0f} ms, of an empty Textual app {bare * 1000:.0f}", ours / bare, 1.3, "×")
    if asked.vllmstat:
        ours, theirs = per_refresh(asked.vllmstat, asked.page, asked.seconds)
        told = f"a refresh: {ours * 1000:.0f} ms, of vllmstat {theirs * 1000:.0f}"
        checks.most(told, ours / theirs, 0.5, "×")
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small", Path(folder) / "large"
        record_run(small)
        checks.most("a frame of Live at 200×60", asyncio.run(frame_ms(small)), 15, "ms")
        report.make_store(large, LEDGER_CELLS)
        storage.make_month(large, round(asked.million * 1e6))
        record_run(large)
        little, much = poll_ms(small), poll_ms(large)
        told = f"the first poll with {asked.million:g} M archived steps: {much:.0f} ms, without {little:.0f}"
        checks.most(told, much / little, 1.5, "×")
        for page, limit in (("live", 80), ("history", 200), ("bill", 200)):
            for name, store in (("small", small), ("large", large)):
                resident, shared = memory(store, page)
                checks.most(f"memory of {page}, {name} store ({shared:.0f} MiB are file pages)", resident, limit, "MiB")
    return 1 if checks.misses else 0


if __name__ == "__main__":
    sys.exit(main())
