"""What the daemon does beside collecting: telling Prometheus, and whom alerts go to."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ...storage.live import LiveReader
from ..alerts.watch import AlertWatch
from ..alerts.webhook import Webhook
from ..config.collecting import CollectConfig
from ..spooled.source import SpoolSource
from ..totals import Totals
from .daemon import Chore, Daemon
from .retention import Retention

if TYPE_CHECKING:
    from ...storage.store import Store

Tell = Callable[[str], None]


@contextmanager
def duties(
    config: CollectConfig, store: Store, listen: str | None, tell: Tell
) -> Generator[tuple[list[Chore], Callable[[Daemon], None]]]:
    """The chores of a configuration, and how they learn of the daemon whose sources they tell about."""
    daemons: list[Daemon] = []

    def spools() -> list[SpoolSource]:
        return [spool for daemon in daemons for spool in daemon.spools]

    with ExitStack() as stack:
        chores: list[Chore] = []
        reader = stack.enter_context(LiveReader(store.path))
        totals = Totals(reader)
        if listen is not None:
            from ..exporter.page import FareboxPage
            from ..exporter.server import exporting

            page = FareboxPage(reader, totals, config.tenants, spools)
            host, port = stack.enter_context(exporting(page, listen))
            tell(f"metrics on http://{host}:{port}/metrics")
        if config.retention is not None:
            chores.append(Retention(config.retention, store, tell))
        if config.alerts is not None:
            webhook = stack.enter_context(Webhook.of(config.alerts, tell))
            chores.append(AlertWatch(config.alerts.rule, store, reader, totals, webhook.send))
        yield chores, daemons.append
