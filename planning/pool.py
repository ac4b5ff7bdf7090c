"""Many scenarios on all cores: each is replayed in a process of its own, and only what is kept of it comes back."""

from __future__ import annotations

import gc
import os
import pickle
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar

from .live import as_it_was, under
from .outcome import Outcome
from .scenario import Scenario
from .traffic import Recorded

Kept = TypeVar("Kept")
Reduce = Callable[[Recorded, Scenario, Outcome], Kept]
"""What to keep of a replay; a function of a module, so that other processes find it."""
IsSpared = Callable[[int, dict[int, Any]], bool]
"""Whether a replay, by its index, need not begin, since what is kept of others by now tells what it would come to."""
FEW = 8_000
"""So few requests, over all scenarios, are replayed before other processes have started."""


class _Work(NamedTuple):
    """What all replays need."""

    recorded: Recorded
    scenarios: Sequence[Scenario]

    def replay(self, number: int, keep: Reduce[Kept]) -> Kept:
        scenario = self.scenarios[number]
        outcome = as_it_was(self.recorded) if scenario.is_empty else under(self.recorded, scenario)
        return keep(self.recorded, scenario, outcome)


def live_all(
    recorded: Recorded,
    scenarios: Sequence[Scenario],
    keep: Reduce[Kept],
    on_done: Callable[[int], None],
    is_spared: IsSpared = lambda number, done: False,
) -> dict[int, Kept]:
    """Replay the traffic under every scenario; what is kept, by its index. An interruption keeps what is done.

    `on_done` gets the number of replays done. Raises as `under` does for a scenario that cannot be.
    """
    done: dict[int, Kept] = {}
    is_small = len(scenarios) * len(recorded.arrivals) < FEW or len(scenarios) == 1
    replay = _one_by_one if is_small else _side_by_side
    coming = (number for number in range(len(scenarios)) if not is_spared(number, done))
    try:
        with closing(replay(_Work(recorded, scenarios), keep, coming)) as replays:
            for number, kept in replays:
                done[number] = kept
                on_done(len(done))
    except KeyboardInterrupt:
        pass
    return done


def _one_by_one(work: _Work, keep: Reduce[Kept], coming: Iterator[int]) -> Generator[tuple[int, Kept], None, None]:
    for number in coming:
        yield number, work.replay(number, keep)


def _side_by_side(work: _Work, keep: Reduce[Kept], coming: Iterator[int]) -> Generator[tuple[int, Kept], None, None]:
    """Traffic was read once: workers load it from a file in a quarter of the time, all of them at once."""
    with TemporaryDirectory(prefix="farebox-") as folder:
        file = Path(folder) / "work"
        file.write_bytes(pickle.dumps(work))
        workers = min(_cores(), len(work.scenarios))
        pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (file,))
        try:
            futures: dict[Future[Kept], int] = {}
            while True:
                for number in islice(coming, workers - len(futures)):
                    futures[pool.submit(_replay, number, keep)] = number
                if not futures:
                    return
                for future in wait(futures, return_when=FIRST_COMPLETED).done:
                    yield futures.pop(future), future.result()
        except (KeyboardInterrupt, GeneratorExit):
            for process in list(pool._processes.values()):  # pyright: ignore[reportPrivateUsage] -- nothing else ends them
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_work: list[_Work] = []
"""What a worker process was given, once."""


def _begin(file: Path) -> None:
    """Load the work in a worker; interruptions are its parent's to handle.

    The work lives as long as the worker, so nobody searches its million tuples for garbage.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.disable()
    _work.append(pickle.loads(file.read_bytes()))
    gc.freeze()
    gc.enable()


def _replay(number: int, keep: Reduce[Any]) -> Any:
    """One scenario in a worker."""
    return _work[0].replay(number, keep)
