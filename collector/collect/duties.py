"""What the daemon does beside collecting: telling Prometheus, and whom alerts go to."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from ...storage.live import LiveReader
from ..alerts.watch import AlertWatch
from ..alerts.webhook import Webhook
from ..config.collecting import CollectConfig
from ..totals import Totals
from .daemon import Daemon
from .retention import Retention
from .thread import Tell

if TYPE_CHECKING:
    from ...storage.store import Store


@contextmanager
def duties(config: CollectConfig, store: Store, daemon: Daemon, listen: str | None, tell: Tell) -> Generator[None]:
    """Give the daemon the chores of a configuration; what they need is open while this is held."""
    with ExitStack() as stack:
        reader = stack.enter_context(LiveReader(store.path))
        totals = Totals(reader)
        if listen is not None:
            from ..exporter.page import FareboxPage
            from ..exporter.server import exporting

            page = FareboxPage(reader, totals, config.tenants, lambda: daemon.spools)
            host, port = stack.enter_context(exporting(page, listen))
            tell(f"metrics on http://{host}:{port}/metrics")
        if config.retention is not None:
            daemon.chores.append(Retention(config.retention, store, tell))
        if config.alerts is not None:
            webhook = stack.enter_context(Webhook.of(config.alerts, tell))
            daemon.chores.append(AlertWatch(config.alerts.rule, store, reader, totals, webhook.send))
        yield
