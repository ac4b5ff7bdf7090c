"""How long until Farebox's first frame, against an empty Textual app: both from process start, taken in turns.

python benchmarks/first_paint.py [rounds]
"""

from __future__ import annotations

import subprocess
import sys
import time
from statistics import median

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
    """Run a program in a fresh interpreter until it ends."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return time.perf_counter() - start


def main(rounds: int) -> None:
    """Print both medians and their ratio."""
    for program in (BARE, FAREBOX):
        seconds(program)
    times = [(seconds(BARE), seconds(FAREBOX)) for _ in range(rounds)]
    bare, farebox = (median(column) for column in zip(*times, strict=True))
    print(f"bare Textual app {bare * 1000:.0f} ms, Farebox {farebox * 1000:.0f} ms, ratio {farebox / bare:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
