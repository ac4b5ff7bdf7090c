"""`farebox top http://…`: a collector on a store, and what it shows."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import FareboxError
from .beside import beside
from .recording import keep_rate
from .screens import Shown, show_screens

if TYPE_CHECKING:
    from ..collector.scrape.fetch import Target
    from ..collector.scrape.setup import Setup
    from ..collector.scrape.source import Look
    from ..storage.store import Store


@dataclass(frozen=True)
class Scraping:
    """What is to be scraped, how often, and where to."""

    target: Target
    setup: Setup
    period_s: float
    rate: Decimal | None

    def check(self) -> Look:
        """Read the page once; FareboxError with one clear sentence when there is nothing to watch."""
        from ..collector.scrape.source import ScrapeSource

        source = ScrapeSource(self.target, self.setup, period_s=self.period_s)
        look = source.poll(time.time_ns(), time.monotonic_ns())
        source.close()
        if look.run is None:
            raise FareboxError(look.why or "there is nothing to watch")
        return look

    def record(self, place: Path, stop: threading.Event, looks: int | None = None) -> None:
        """Scrape into a store until told to stop, or so many times."""
        from ..collector.scrape.source import ScrapeSource
        from ..collector.scraped import recorded_until, scrape

        with self._store(place) as store:
            source = ScrapeSource(
                self.target,
                self.setup,
                period_s=self.period_s,
                not_before_ns=recorded_until(store, self.setup.name(self.target)),
            )
            number = count(1)

            def stop_after(_: Look) -> None:
                if next(number) == looks:
                    stop.set()

            scrape(source, store, stop, stop_after)

    @contextmanager
    def _store(self, place: Path) -> Generator[Store]:
        from ..storage.store import create_store

        with create_store(place) as store:
            keep_rate(store, self.rate, "farebox top")
            yield store
            store.roll()


@contextmanager
def store_at(place: Path | None) -> Generator[Path]:
    """The store to record into: the given one, else one that is removed in the end."""
    if place is not None:
        yield place
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="farebox-top-") as folder:
        yield Path(folder) / "store"


def watch(scraping: Scraping, place: Path | None, shown: Shown) -> int:
    """Show the live screen while a process beside it scrapes; returns the exit code."""
    with store_at(place) as store, beside(_record, scraping, store):
        return show_screens(store, shown)


def show_once(scraping: Scraping, place: Path | None, *, as_json: bool, ascii_only: bool) -> None:
    """Print one snapshot, after two looks at the page: between them lies what can be told."""
    from .top import print_snapshot

    click.echo(f"farebox: reading {scraping.target.place} twice, {scraping.period_s:g} s apart", err=True)
    with store_at(place) as store:
        scraping.record(store, threading.Event(), looks=2)
        print_snapshot(store, as_json=as_json, ascii_only=ascii_only)


def _record(scraping: Scraping, store: Path) -> None:
    """The process that scrapes: told to end, it records the end of the run."""
    stop = threading.Event()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end(_number: int, _frame: object) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, end)
    scraping.record(store, stop)
