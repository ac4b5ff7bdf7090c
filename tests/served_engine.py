"""An embedded engine behind HTTP on a free port, in the test's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from farebox.collector.listening import listen
from farebox.collector.serving import build_server
from farebox.engine.config import EngineConfig
from farebox.engine.server.access import Access
from farebox.engine.server.driver import Driver
from farebox.engine.server.metrics import Metrics
from farebox.engine.server.service import Offer, Service
from farebox.events.sink import Sink

MOST_TOKENS = 4096


def driver_of(config: EngineConfig, sink: Sink, on_beat: Callable[[], None]) -> tuple[Driver, Metrics]:
    """A driver of one engine that nobody serves yet."""
    metrics = Metrics(config, "tiny", MOST_TOKENS)
    driver = Driver(config, sink, metrics, on_beat)
    metrics.watch(driver.occupancy)
    return driver, metrics


@asynccontextmanager
async def behind_http(
    config: EngineConfig, offer: Offer, access: Access, driver: Driver, metrics: Metrics
) -> AsyncIterator[int]:
    """Serve until the end, when the books of the engine must balance; yields the port."""
    server = build_server(Service(config, offer, access, driver, metrics), drain_s=0)
    with listen("127.0.0.1", 0) as sock:
        driving = asyncio.create_task(driver.run())
        running = asyncio.create_task(server._serve([sock]))  # without its signal handlers, which are the test run's
        try:
            yield sock.getsockname()[1]
        finally:
            driver.put_off_all()
            server.should_exit = True
            await running
            driving.cancel()
            await asyncio.wait([driving])
            assert driving.cancelled(), driving.exception()
            driver.check_integrity()
