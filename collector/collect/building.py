"""From the file's sources to sources that run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..config.sources import DcgmConfig, NvmlConfig, ScrapeConfig, SourceConfig, SpoolConfig
from ..hardware import HardwareRecorder
from ..spooled.engines import Engines
from ..spooled.source import SpoolSource
from .hardware import DcgmSource, HardwareSource
from .source import Source

if TYPE_CHECKING:
    from ...storage.store import Store

Build = Callable[[SourceConfig, "Store", Engines], Source]


def build(config: SourceConfig, store: Store, engines: Engines) -> Source:
    """The source that a section of the file describes."""
    if isinstance(config, SpoolConfig):
        return SpoolSource(store, config.path, engines)
    if isinstance(config, NvmlConfig):
        return HardwareSource(HardwareRecorder(store), engines)
    if isinstance(config, DcgmConfig):
        return DcgmSource(config, store, engines)
    if isinstance(config, ScrapeConfig):
        from .scraping import scraped_engine

        return scraped_engine(config, store, engines)
    from .tracing import TraceSource

    return TraceSource(config, store)


def scraped_engines(sources: Iterable[SourceConfig]) -> list[str]:
    """The engines whose usage a scraper wants."""
    scraped = [source for source in sources if isinstance(source, ScrapeConfig)]
    if not scraped:
        return []
    from .scraping import engine_of

    return [engine_of(source) for source in scraped]
