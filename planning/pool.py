"""Many scenarios on all cores: each is replayed in a process of its own, and only what is kept of it comes back."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .live import as_it_was, under
from .outcome import Outcome
from .scenario import Scenario
from .traffic import Recorded, read_recorded

if TYPE_CHECKING:
    from ..costing.periods import Period

Kept = TypeVar("Kept")
Reduce = Callable[[Recorded, Scenario, Outcome], Kept]
"""What to keep of a replay; a function of a module, so that other processes find it."""
FEW = 8_000
"""So few requests, over all scenarios, are replayed before other processes have started."""


def live_all(
    recorded: Recorded, scenarios: Sequence[Scenario], keep: Reduce[Kept], on_done: Callable[[int], None]
) -> dict[int, Kept]:
    """Replay the traffic under every scenario; what is kept, by its index. An interruption keeps what is done.

    `on_done` gets the number of replays done. Raises as `under` does for a scenario that cannot be.
    """
    done: dict[int, Kept] = {}
    try:
        if len(scenarios) * len(recorded.arrivals) < FEW or len(scenarios) == 1:
            _one_by_one(recorded, scenarios, keep, on_done, done)
        else:
            _side_by_side(recorded, scenarios, keep, on_done, done)
    except KeyboardInterrupt:
        pass
    return done


def _one_by_one(
    recorded: Recorded,
    scenarios: Sequence[Scenario],
    keep: Reduce[Kept],
    on_done: Callable[[int], None],
    done: dict[int, Kept],
) -> None:
    for number, scenario in enumerate(scenarios):
        done[number] = keep(recorded, scenario, _live(recorded, scenario))
        on_done(len(done))


def _side_by_side(
    recorded: Recorded,
    scenarios: Sequence[Scenario],
    keep: Reduce[Kept],
    on_done: Callable[[int], None],
    done: dict[int, Kept],
) -> None:
    workers = min(_cores(), len(scenarios))
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _begin, (recorded.store, recorded.window, scenarios))
    try:
        futures: dict[Future[Kept], int] = {
            pool.submit(_replay, number, keep): number for number in range(len(scenarios))
        }
        for future in as_completed(futures):
            done[futures[future]] = future.result()
            on_done(len(done))
    except KeyboardInterrupt:
        for process in list(pool._processes.values()):  # pyright: ignore[reportPrivateUsage] -- nothing else ends them
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Work(NamedTuple):
    recorded: Recorded
    scenarios: Sequence[Scenario]


_work: list[_Work] = []
"""What a worker process was given, once."""


def _begin(store: Path, window: Period | None, scenarios: Sequence[Scenario]) -> None:
    """Read the traffic in a worker; interruptions are its parent's to handle."""
    from ..storage.store import open_store

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with open_store(store) as opened:
        _work.append(_Work(read_recorded(opened, window), scenarios))


def _replay(number: int, keep: Reduce[Any]) -> Any:
    """One scenario in a worker."""
    recorded, scenarios = _work[0]
    return keep(recorded, scenarios[number], _live(recorded, scenarios[number]))


def _live(recorded: Recorded, scenario: Scenario) -> Outcome:
    return as_it_was(recorded) if scenario.is_empty else under(recorded, scenario)
