"""Scraped engines recorded: what each look at a page found, split, booked and stored."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..events import SOURCE_STATES, Batch, Run
from .recorder import Recorder
from .scrape.source import Look, ScrapeSource

if TYPE_CHECKING:
    from ..storage.store import Store
    from .spooled.usage_queue import UsageQueue


class ScrapeRecorder:
    """Records the looks of one source into a store, each look in one transaction."""

    def __init__(self, store: Store, usage: UsageQueue | None = None) -> None:
        """Record into `store`; what an interval used of `usage` is recorded as used with it."""
        self._store = store
        self._usage = usage
        self._recorder: Recorder | None = None
        self._run: tuple[str, str] | None = None

    def record(self, look: Look) -> None:
        """Record what a look found: how the source stands, a run's end, the run and its newest interval."""
        if look.state is not None:
            self._store.put(SOURCE_STATES, look.state)
        if look.ended is not None:
            self._tell(look.ended)
        if look.run is None:
            return
        recorder = self._of(look.run)
        if look.step is not None:
            recorder.step(look.step, look.cells)
        if look.interval is not None:
            recorder.interval(look.interval)
        recorder.run(look.run)
        recorder.flush()

    def _tell(self, run: Run) -> None:
        recorder = self._of(run)
        recorder.run(run)
        recorder.flush()

    def _append(self, batch: Batch) -> None:
        if self._usage is None:
            self._store.append(batch)
            return
        self._store.append_all([batch], self._usage.used())
        self._usage.keep()

    def _of(self, run: Run) -> Recorder:
        """The recorder of a run; its books open with the run's first record."""
        key = (run.engine_id, run.run_id)
        if self._recorder is None or self._run != key:
            self._recorder, self._run = Recorder(self._store, bulk=False, append=self._append), key
            self._recorder.run(run._replace(heartbeat_ns=run.started_ns, ended_ns=None))
        return self._recorder


def recorded_until(store: Store, engine_id: str) -> int:
    """Up to where an engine's runs on GPUs are recorded, UTC ns; 0 without any."""
    return max((run.wall_end_ns for run in store.runs() if run.engine_id == engine_id and run.gpus), default=0)


def scrape(
    source: ScrapeSource, store: Store, stop: threading.Event, on_look: Callable[[Look], None] | None = None
) -> None:
    """Scrape until told to stop, and record into `store`; the run ends then."""
    recorder = ScrapeRecorder(store)
    try:
        while not stop.is_set():
            look = source.poll(time.time_ns(), time.monotonic_ns())
            recorder.record(look)
            store.maintain(time.time_ns())
            if on_look is not None:
                on_look(look)
            stop.wait(source.wait_s)
    finally:
        recorder.record(source.close())
