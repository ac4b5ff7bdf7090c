"""The recorder: one scheduler's meter, its spool and its beat, from the scheduler's making to its end."""

from __future__ import annotations

import os
import re
import threading
import time
from typing import Any

from .clock import Clock, process_started_ns
from .guard import Guard
from .hooks import Hooks
from .log import LOG
from .meter import Meter
from .records import Records
from .run import blocks_of, describe_run, name_run
from .settings import Settings
from .spool.writer import SpoolWriter

BEAT_S = 1.0
MEMORY_EVENTS = 20_000
"""What may wait in vLLM's memory while the disk has no room: some 20 MiB."""


class Recorder:
    """Records one EngineCore into a spool of its own."""

    def __init__(self, scheduler: Any, settings: Settings) -> None:
        """Take a folder under `settings.spool` and hook into the scheduler.

        Raises:
            OSError: the folder cannot be written.
        """
        if settings.spool is None:
            raise ValueError("FAREBOX_SPOOL names no folder")
        self._clock = Clock()
        names = name_run(scheduler, settings)
        loaded_ns = time.monotonic_ns()
        self._run = describe_run(scheduler, names, self._clock, process_started_ns(), loaded_ns)
        self._records = Records(names, self._clock, self._run["gpus"], blocks_of(scheduler))
        self.folder = settings.spool / re.sub(r"[^\w.-]+", "-", f"{names.engine_id}-{names.run_id}")
        settings.spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._writer = SpoolWriter(
            self.folder, cap_bytes=settings.cap_bytes, memory_events=MEMORY_EVENTS, prepare=self._records.event
        )
        self._pid = os.getpid()
        self._is_over = threading.Event()
        self._writer.put({"run": self._run})
        self._meter = Meter(scheduler, self._writer.put)
        self._hooks = Hooks(scheduler, self._meter, Guard(self._stop))
        threading.Thread(target=self._beat, name="farebox-beat", daemon=True).start()

    def close(self) -> None:
        """The engine ends: tell who is still on board, and the end of the run."""
        if self._is_over.is_set() or os.getpid() != self._pid:
            return
        self._hooks.remove()
        self._meter.abandon()
        self._is_over.set()
        ended_ns = self._clock.utc(time.monotonic_ns())
        self._writer.put({"run": self._run | {"ended_ns": ended_ns}})
        self._writer.close()

    def _stop(self) -> None:
        """Metering has failed, the engine goes on: what was seen is written, and the run is not heard of again."""
        self._hooks.remove()
        self._is_over.set()
        threading.Thread(target=self._writer.close, name="farebox-close", daemon=True).start()

    def _beat(self) -> None:
        while not self._is_over.wait(BEAT_S):
            self._writer.put(self._records.beat(self._meter.told_ns()))


def start(scheduler: Any, settings: Settings) -> Recorder | None:
    """Record a scheduler; None, and a line in the log, when that cannot be done. Never raises."""
    try:
        if settings.spool is None:
            LOG.info("farebox: FAREBOX_SPOOL names no folder, so nothing is recorded")
            return None
        recorder = Recorder(scheduler, settings)
    except OSError as error:
        LOG.warning("farebox: nothing is recorded: the spool under %s cannot be written: %s", settings.spool, error)
        return None
    except Exception:
        LOG.warning("farebox: nothing is recorded: this vLLM is not as the plugin knows it", exc_info=True)
        return None
    LOG.info("farebox: steps are recorded in %s", recorder.folder)
    return recorder
