"""Kill, fill and corrupt a store while the embedded engine records into it, and compare every integer.

    python tests/faults/torture.py [SECONDS] [SEED]    (60 seconds; 0: each kind once, briefly)

What a store says afterwards has to be what the engine said, to the last integer, and what is lost has to be reported.
Exits with 1 when it is not, and leaves the store for whoever wants to look.
"""

from __future__ import annotations

import random as dice
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import damage
import full_disk
import kills
import spooling

KINDS: dict[str, tuple[Callable[[Path, Random, int], str], int]] = {
    "killed": (kills.torture, 5),
    "filled": (full_disk.torture, 3),
    "corrupted": (damage.torture, 12),
    "spooled": (spooling.torture, 3),
}
"""Each kind, and how many rounds of it make one turn."""


def main() -> int:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else dice.randrange(10**6)
    until = time.monotonic() + seconds
    print(f"seed {seed}", flush=True)
    turn = 0
    while turn == 0 or time.monotonic() < until:
        for name, (torture, rounds) in KINDS.items():
            folder = Path(tempfile.mkdtemp(prefix="farebox-torture-"))
            try:
                outcome = torture(folder, Random(f"{seed}/{turn}/{name}"), rounds if seconds else 1)
            except Exception as error:
                print(f"{name}, turn {turn}: {type(error).__name__}: {error}\nleft in {folder}", flush=True)
                return 1
            print(f"{name}: {outcome}", flush=True)
            shutil.rmtree(folder)
        turn += 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
