"""Whether the sources of a configuration can be read, one by one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import FareboxError
from ..config.collecting import CollectConfig
from ..config.sources import DcgmConfig, OtlpConfig, PageConfig, ScrapeConfig, SourceConfig, SpoolConfig
from .check import Check

if TYPE_CHECKING:
    from ...storage.store import Store


def check_config(config: CollectConfig) -> list[Check]:
    """Each source that the file names; GPUs have checks of their own."""
    return [check for source in config.source for check in _check(source)]


def check_names(config: CollectConfig, store: Store) -> list[Check]:
    """Pages whose engine a proxy records under another name, so that tokens count twice and have no tenant."""
    from ..collect.scraping import engine_of

    newest: dict[str, int] = {}
    for run in store.runs():
        if run.gpus == 0:
            newest[run.engine_id] = max(run.heartbeat_ns, newest.get(run.engine_id, 0))
    found: list[Check] = []
    for source in config.source:
        if isinstance(source, ScrapeConfig) and source.engine:
            default = engine_of(source.model_copy(update={"engine": None}))
            if newest.get(default, 0) > newest.get(source.engine, 0):
                says = f"a proxy counts the same tokens as the engine {default}: they are on the bill twice"
                advice = f'leave out engine = "{source.engine}", or start the proxy with --engine {source.engine}'
                found.append(Check(f"name {source.engine}", "bad", says, advice))
    return found


def spool_roots(config: CollectConfig | None) -> Iterable[Path]:
    """The folders of spools that the file names."""
    return [source.path for source in config.source if isinstance(source, SpoolConfig)] if config else []


def _check(source: SourceConfig) -> list[Check]:
    if isinstance(source, ScrapeConfig):
        return [_page(source)]
    if isinstance(source, DcgmConfig):
        return [_gpus(source)]
    if isinstance(source, SpoolConfig):
        return [_folder(source.path)]
    if isinstance(source, OtlpConfig):
        return [Check(f"otlp {source.listen}", "ok", "spans are sent to it; it is there while `farebox collect` runs")]
    return []


def _page(source: ScrapeConfig) -> Check:
    """One look at a page: whether it comes, and whose it is."""
    from ..collect.scraping import scrape_source

    name = f"source {source.engine or source.url}"
    try:
        opened = scrape_source(source)
        look = opened.poll(time.time_ns(), time.monotonic_ns())
        opened.close()
    except FareboxError as error:
        return Check(name, "bad", str(error))
    if look.is_of_gpus:
        return _gpus(source)
    if look.reading is None:
        why = look.why or "no answer"
        return Check(name, "bad", why if opened.target.place in why else f"{source.url}: {why}")
    says = f"{source.url} is {look.reading.engine.name}"
    return Check(name, "note" if look.why else "ok", f"{says}: {look.why}" if look.why else says)


def _gpus(source: PageConfig) -> Check:
    """One look at the page of an exporter of GPUs: which it tells."""
    from ..collect.hardware import target_of
    from ..dcgm.watch import DcgmWatch
    from ..scrape.fetch import HttpFetcher
    from ..scrape.page import read_page
    from ..scrape.server import METRICS

    name = f"GPUs {source.url}"
    try:
        target = target_of(source)
        fetcher = HttpFetcher(target)
        poll = DcgmWatch(target.host).see(read_page(fetcher.get(target.path or METRICS).text), time.time_ns())
        fetcher.close()
    except FareboxError as error:
        return Check(name, "bad", str(error))
    if not poll.samples:
        return Check(name, "bad", f"{source.url}: {poll.why}", "is that the address of a DCGM exporter?")
    says = f"{len(poll.samples)} GPUs and slices on the page of a DCGM exporter"
    return Check(name, "note" if poll.why else "ok", f"{says}: {poll.why}" if poll.why else says)


def _folder(path: Path) -> Check:
    if not path.is_dir():
        return Check(f"spools {path}", "note", "there is no such folder yet: the first writer makes it")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return Check(f"spools {path}", "bad", "cannot be read and written", "run writers and collector as one group")
    return Check(f"spools {path}", "ok", "can be read")
