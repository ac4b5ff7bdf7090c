"""The daemon: starts the sources, keeps the store in order, and ends when it is told to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ...errors import FareboxError
from ...storage.layout import Layout
from ..budget_watch import BudgetWatch
from ..config.sources import SourceConfig, SpoolConfig
from ..spooled.engines import Engines
from ..spooled.source import SpoolSource
from .building import Build, build, scraped_engines
from .notify import notify
from .thread import SourceThread, Tell

if TYPE_CHECKING:
    from ...storage.store import Store

TURN_S = 1.0
GOODBYE_S = 20.0
"""How long sources may take to end; one that hangs is left behind."""


class Chore(Protocol):
    """Something that the daemon does between sources: alerts, figures for the exporter."""

    def turn(self) -> None:
        """Do what is due."""
        ...


class Daemon:
    """Runs the sources of a configuration, each on its own thread, until `stop`; `reload` compares and changes them."""

    def __init__(self, store: Store, tell: Tell, make: Build = build) -> None:
        self.engines = Engines()
        self.chores: list[Chore] = []
        self._store = store
        self._tell = tell
        self._make = make
        self._threads: dict[SourceConfig, SourceThread] = {}
        self._stop = threading.Event()
        self._reread: Callable[[], Sequence[SourceConfig]] | None = None
        self._wants_reload = False

    @property
    def spools(self) -> list[SpoolSource]:
        """The sources that are spools."""
        return [one.source for one in self._threads.values() if isinstance(one.source, SpoolSource)]

    def run(self, sources: Sequence[SourceConfig], reread: Callable[[], Sequence[SourceConfig]] | None = None) -> None:
        """Collect until told to stop, then record what is there; `reread` gives the sources anew."""
        self._reread = reread
        watch = BudgetWatch(self._store)
        self._change(sources)
        notify("READY=1")
        try:
            while not self._stop.wait(TURN_S):
                self._turn(watch)
        finally:
            notify("STOPPING=1")
            self._end(list(self._threads))

    def stop(self) -> None:
        """End; from any thread, or from a signal."""
        self._stop.set()

    def reload(self) -> None:
        """Read the sources anew with the next turn."""
        self._wants_reload = True

    def _turn(self, watch: BudgetWatch) -> None:
        if self._wants_reload and self._reread is not None:
            self._wants_reload = False
            self._reload(self._reread)
        try:
            self._store.maintain(time.time_ns())
            watch.look_if_due()
            for chore in self.chores:
                chore.turn()
        except FareboxError as error:
            self._tell(str(error))
        if all(thread.is_alive for thread in self._threads.values()):
            notify("WATCHDOG=1")

    def _reload(self, reread: Callable[[], Sequence[SourceConfig]]) -> None:
        try:
            sources = reread()
        except FareboxError as error:
            self._tell(f"going on as before: {error}")
            return
        self._change(sources)
        self._tell(f"read the configuration anew: {len(self._threads)} sources")

    def _change(self, sources: Sequence[SourceConfig]) -> None:
        """Run these sources: end those that are gone, begin those that are new."""
        all_sources = dict.fromkeys([SpoolConfig(kind="spool", path=self._own_spool), *map(_resolved, sources)])
        self._end([config for config in self._threads if config not in all_sources])
        self.engines.scrape(scraped_engines(all_sources))
        for config in sorted(all_sources, key=lambda config: config.kind != "spool"):
            if config not in self._threads:
                self._begin(config)

    @property
    def _own_spool(self) -> Path:
        return Layout(self._store.path).spools.resolve()

    def _begin(self, config: SourceConfig) -> None:
        thread = SourceThread(self._make(config, self._store, self.engines), self._store, self._tell)
        self._threads[config] = thread
        if config.kind == "spool":
            thread.turn()  # so that it is known whose steps spools tell before anybody scrapes
        thread.start()

    def _end(self, gone: Sequence[SourceConfig]) -> None:
        for config in gone:
            self._threads[config].stop()
        deadline = time.monotonic() + GOODBYE_S
        for config in gone:
            thread = self._threads.pop(config)
            if not thread.join(max(0.0, deadline - time.monotonic())):
                self._tell(f"{thread.source.name} does not end: left behind")


def _resolved(config: SourceConfig) -> SourceConfig:
    """A folder has one name, so that nobody reads it twice."""
    return config.model_copy(update={"path": config.path.resolve()}) if isinstance(config, SpoolConfig) else config
