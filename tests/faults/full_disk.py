"""Filled: a disk of a few MB that is full again and again while the engine records, archives and spools on it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

from comparing import check_prefix, expect
from kills import keep_in_order
from witness import SPEED, live

from farebox.collector.recorder import Recorder
from farebox.engine.pace import Pace
from farebox.storage.store import create_store

SIZE_MB = 12


def torture(folder: Path, random: Random, rounds: int) -> str:
    """Fill the disk that is recorded on so many times; skipped where nobody may mount one."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-Urm", "true"], check=False).returncode:
        return "skipped: needs a mount namespace of its own"
    inner = f'mount -t tmpfs -o size={SIZE_MB}m tmpfs "$1" || exit 77; shift; exec "$@"'
    command = [sys.executable, __file__, str(folder), str(random.randrange(10**6)), str(rounds)]
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", inner, "sh", str(folder), *command], capture_output=True, text=True, check=False
    )
    if done.returncode == 77:
        return "skipped: may not mount a small disk"
    if done.returncode:
        raise AssertionError(done.stderr)
    full, steps = json.loads(done.stdout)
    return f"full {rounds} times, {full} flushes met no room; {steps:,} steps are there, each once"


def fill(folder: Path, seed: int, rounds: int) -> tuple[int, int]:
    """Record a run while something else takes all the room, and gives it back, so many times."""
    ballast = folder / "ballast"
    with create_store(folder / "s") as store:
        recorder = Recorder(store, bulk=False)
        turn = full = 0

        def tick() -> None:
            nonlocal turn, full
            if not recorder.flush_if_due():
                return
            turn += 1
            full += ballast.exists()
            ballast.unlink(missing_ok=True) if turn % 4 == 0 else None
            keep_in_order(store, turn)
            if turn % 4 == 1 and turn // 4 < rounds:
                take_room(ballast)

        witness = live(seed, 300 * rounds, recorder, Pace(SPEED), tick)
        ballast.unlink(missing_ok=True)
        recorder.flush()
    steps = check_prefix(folder / "s", witness).steps
    expect("all of the run", steps, len(witness.steps))
    return full, steps


def take_room(file: Path) -> None:
    """Leave no room on the disk of a file."""
    with file.open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(b"x" * 4096)


if __name__ == "__main__":
    print(json.dumps(fill(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
