"""A scraped engine as a source of the daemon: counted by its page, unless a spool tells its steps."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from ...events import UNKNOWN_TENANT
from ..config.sources import ScrapeConfig
from ..scrape.fetch import Target
from ..scrape.memory import PageMemory
from ..scrape.reading import Reading
from ..scrape.setup import Setup
from ..scrape.source import ScrapeSource
from ..scrape.spelling import KEYS
from ..scrape.split import UsageFeed
from ..scraped import ScrapeRecorder, recorded_until
from ..spooled.engines import Engines
from .hardware import DcgmSource, target_of
from .source import Look, Source

if TYPE_CHECKING:
    from ...events import Run
    from ...storage.store import Store
    from ..scrape.source import Look as Seen

PAGE = "-page"
"""Ends the run_id of a run that has the page's intervals only, and no GPUs."""


class ScrapedEngine:
    """Reads one page again and again, and records what moved on it; `gpus` takes over where the page is of GPUs."""

    kind = "scrape"

    def __init__(
        self,
        engine_id: str,
        source: ScrapeSource,
        store: Store,
        engines: Engines,
        memory: PageMemory,
        period_s: float,
        gpus: Source,
    ) -> None:
        self.name = engine_id
        self.period_s = period_s
        self._source = source
        self._memory = memory
        self._engines = engines
        self._recorder = ScrapeRecorder(store, engines.queues.get(engine_id))
        self._gpus = gpus
        self._is_of_gpus = False
        self._beside: set[str] = set()

    def look(self) -> Look:
        """Read the page; what its engine did since the last time is recorded."""
        if self._is_of_gpus:
            return self._gpus.look()
        seen = self._source.poll(time.time_ns(), time.monotonic_ns())
        if seen.is_of_gpus:
            self._is_of_gpus = True
            return self._gpus.look()
        self._record(seen)
        if seen.reading is not None and seen.run is not None and self._is_alone(seen.run):
            self._record(self._source.part())
        return Look(seen.standing, seen.why, again_s=self._source.wait_s, is_told=True)

    def close(self) -> None:
        """Let go of the server; the run ends where it was last seen."""
        self._record(self._source.close())
        self._gpus.close()

    def _is_alone(self, run: Run) -> bool:
        """Whether an engine goes on whose steps nobody tells any more: its plugin has switched itself off."""
        return run.run_id in self._beside and not self._engines.is_exact(self.name)

    def _record(self, seen: Seen) -> None:
        """Record a look. A run that was seen beside a spool stays so, also when the spool has come to its end."""
        if self._engines.is_exact(self.name):
            self._beside |= {run.run_id for run in (seen.run, seen.ended) if run is not None}
        if seen.ended is not None and seen.ended.run_id in self._beside:
            seen = seen._replace(ended=_without_gpus(seen.ended))
        if seen.run is not None and seen.run.run_id in self._beside:
            seen = seen._replace(run=_without_gpus(seen.run), step=None, cells=())
        elif seen.run is not None and seen.reading is not None:
            self._memory.keep(seen.run.heartbeat_ns, seen.reading)
        self._recorder.record(seen)


def _without_gpus(run: Run) -> Run:
    """A run that has the page's intervals only: steps, time and tokens are the spool's."""
    return run._replace(run_id=run.run_id + PAGE, gpus=0, step_model=None)


def scraped_engine(config: ScrapeConfig, store: Store, engines: Engines) -> ScrapedEngine:
    """The source that a section of the file describes."""
    engine_id = engine_of(config)
    queue = engines.queues.get(engine_id)
    memory = PageMemory(store.path / "pages" / f"{quote(engine_id, safe='')}.json")
    until_ns = recorded_until(store, engine_id)
    source = scrape_source(config, None if queue is None else queue.take, until_ns, memory.at(until_ns))
    return ScrapedEngine(engine_id, source, store, engines, memory, config.interval, DcgmSource(config, store, engines))


def engine_of(config: ScrapeConfig) -> str:
    """The name of a scraped engine in records."""
    return Setup(engine_id=config.engine).name(Target(config.url))


def scrape_source(
    config: ScrapeConfig,
    usage: UsageFeed | None = None,
    not_before_ns: int = 0,
    remembered: Reading | None = None,
) -> ScrapeSource:
    """What reads the page of a section; InputError where its address is none."""
    target = target_of(config)
    setup = Setup(
        engine_id=config.engine,
        host=config.host,
        gpu=config.gpu,
        gpus=config.gpus,
        model=config.model,
        weights=config.weights,
        max_num_seqs=config.seats,
        tenant_id=config.tenant or UNKNOWN_TENANT,
        spelling=KEYS,
    )
    return ScrapeSource(
        target,
        setup,
        period_s=config.interval,
        usage=usage,
        not_before_ns=not_before_ns,
        remembered=remembered,
    )
