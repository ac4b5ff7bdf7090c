"""Processor time until Farebox's first frame, against an empty Textual app: both from process start, taken in turns.

python benchmarks/first_paint.py [rounds]
"""

from __future__ import annotations

import os
import subprocess
import sys

BARE = """
from textual.app import App
class Bare(App[None]):
    def on_ready(self):
        self.call_after_refresh(self.exit)
Bare().run(headless=True)
"""

FAREBOX = """
from farebox.tui.app import FareboxApp
class Painted(FareboxApp):
    def on_ready(self):
        self.call_after_refresh(self.exit)
Painted(lambda: None).run(headless=True)
"""


def seconds(program: str) -> float:
    """Processor seconds of a program in a fresh interpreter; neighbours lengthen the wall clock more."""
    process = subprocess.Popen([sys.executable, "-c", program])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    return used.ru_utime + used.ru_stime


def least(rounds: int) -> tuple[float, float]:
    """The least of both, in processor seconds."""
    for program in (BARE, FAREBOX):
        seconds(program)
    times = [(seconds(BARE), seconds(FAREBOX)) for _ in range(rounds)]
    bare, farebox = (min(column) for column in zip(*times, strict=True))
    return bare, farebox


def main(rounds: int) -> None:
    """Print both, and their ratio."""
    bare, farebox = least(rounds)
    print(f"bare Textual app {bare * 1000:.0f} ms, Farebox {farebox * 1000:.0f} ms, ratio {farebox / bare:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
