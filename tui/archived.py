"""The last minutes of a run that only the archive has, folded in a process that ends: Arrow would stay in this one.

Arrow and what it loads take some 140 MiB, several times as much as the screens.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

from ..errors import FareboxError
from ..events import REQUESTS, SHARES, STEPS, Run
from ..without_pandas import do_without_pandas
from .fold import Fold


def fold_apart(store: Path, run: Run, since_ns: int) -> Fold | None:
    """What `fold_archived` gives, made by another process. Raises FareboxError where that one could not."""
    order = pickle.dumps((store, run, since_ns))
    done = subprocess.run([sys.executable, "-m", __name__], input=order, capture_output=True, check=False)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        raise FareboxError(f"the archive's last minutes cannot be read: {words[-1]}")
    fold: Fold | None = pickle.loads(done.stdout)
    return fold


def fold_archived(store: Path, run: Run, since_ns: int) -> Fold | None:
    """What the archive tells about a run from an instant on (UTC ns); None: no step. Raises StoreError."""
    from ..storage.live import LiveReader

    fold = Fold(run, since_ns)
    with LiveReader(store) as reader:
        steps = reader.archived(STEPS, run, fold.first_ns)
        for step in steps:
            fold.step(step)
        if not steps:
            return None
        fold.shares(reader.archived(SHARES, run, fold.first_ns))
        for request in reader.archived(REQUESTS, run, fold.first_ns):
            fold.request(request)
    fold.board()
    return fold


if __name__ == "__main__":
    do_without_pandas()
    try:
        folded = fold_archived(*pickle.load(sys.stdin.buffer))
    except FareboxError as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(pickle.dumps(folded))
