"""GPUs and host of this machine, looked at once a second and kept in a store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from ..events import GPU_SAMPLES, HOST_SAMPLES, SOURCE_STATES, SourceState
from ..storage.errors import StoreFullError
from .host import HostMeter, host_memory
from .nvml.watch import GpuWatch, Poll
from .samples import SampleLog
from .standing import StandingLog

if TYPE_CHECKING:
    from ..storage.store import Store

PERIOD_S = 1.0


def steady_clock() -> Callable[[], int]:
    """UTC nanoseconds that never go back: anchored now, and then as the monotonic clock runs."""
    ahead_ns = time.time_ns() - time.monotonic_ns()
    return lambda: time.monotonic_ns() + ahead_ns


class HardwareRecorder:
    """Looks at all GPUs and the host, and records what it sees; NVML's outages are states of the source `nvml:HOST`.

    While the disk is full readings wait in memory, the newest 50 000 of them.
    """

    def __init__(self, store: Store, gpus: GpuWatch | None = None, clock: Callable[[], int] | None = None) -> None:
        self._store = store
        self._gpus = gpus or GpuWatch(host_memory=host_memory)
        self._host = HostMeter(self._gpus.host)
        self._clock = clock or steady_clock()
        self._samples = SampleLog(store)
        self._standing = StandingLog(f"nvml:{self._gpus.host}", "nvml")

    def look(self) -> tuple[Poll, SourceState | None]:
        """Look once and record it; returns what was seen, and how NVML stands when there is news of that."""
        at_ns = self._clock()
        poll = self._gpus.poll(at_ns)
        self._samples.add(GPU_SAMPLES, poll.samples)
        self._samples.add(HOST_SAMPLES, [self._host.look(at_ns)])
        standing = self._standing.see(at_ns, poll.state, poll.why)
        with suppress(StoreFullError):
            self._samples.record()
            if standing is not None:
                self._store.put(SOURCE_STATES, standing)
        self._store.maintain(at_ns)
        is_news = standing is not None and standing.since_ns == at_ns
        return poll, standing if is_news else None

    def run(self, stop: threading.Event, on_news: Callable[[SourceState], None]) -> None:
        """Look once a second until told to stop; a look that takes longer delays the next ones."""
        due = time.monotonic()
        while not stop.is_set():
            news = self.look()[1]
            if news is not None:
                on_news(news)
            due = max(due + PERIOD_S, time.monotonic())
            stop.wait(due - time.monotonic())

    def close(self) -> None:
        """Let go of NVML."""
        self._gpus.close()
