"""The embedded engine as a server: calls come in over HTTP, everything is recorded into a store."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import uvicorn

from ..engine.config import BLOCK_SIZE, EngineConfig
from ..engine.server.access import Access
from ..engine.server.app import build_app
from ..engine.server.driver import Driver
from ..engine.server.metrics import Metrics
from ..engine.server.service import Offer, Service
from ..events import API_KEYS
from ..storage.errors import StoreFullError
from .background import BackgroundRecorder
from .budget_watch import BudgetWatch
from .embedded import EmbeddedEngine
from .listening import stop_on_signals
from .recorder import Recorder

if TYPE_CHECKING:
    from ..storage.store import Store

MOST_HEADER_BYTES = 32 * 2**10
_LOOK_S = 0.1
_GOODBYE_S = 5
"""How long clients may take to read the end of their streams."""


def serve(
    engine: EmbeddedEngine,
    offer: Offer,
    access: Access,
    store: Store,
    sock: socket.socket,
    *,
    drain_s: int,
    on_start: Callable[[EngineConfig], None],
) -> None:
    """Serve on `sock` until SIGINT or SIGTERM, and record into `store`.

    Streams have `drain_s` seconds to end then; what still runs is put off. Whatever was served is recorded.
    """
    now_ns = time.time_ns()
    config = engine.config([f"serve:{now_ns}"], has_prefix_ids=True, prefix_block_tokens=BLOCK_SIZE)
    store.check_overlap(config.engine_id, config.run_id, now_ns, now_ns + 1)
    access.use(store.settings(API_KEYS))
    recording = _recording(store, access)
    metrics = Metrics(config, offer.model_names[0], offer.max_model_len)
    driver = Driver(config, recording, metrics, recording.beat)
    metrics.watch(driver.occupancy)
    server = build_server(Service(config, offer, access, driver, metrics), drain_s)
    stop_on_signals(server)
    on_start(config)
    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(_serve(server, driver, sock, drain_s))
    finally:
        recording.close()


def _recording(store: Store, access: Access) -> BackgroundRecorder:
    recorder = Recorder(store, bulk=False)
    watch = BudgetWatch(store)

    def record() -> None:
        recorder.flush()
        store.maintain(time.time_ns())
        with suppress(StoreFullError):
            watch.look_if_due()
        access.use(store.settings(API_KEYS))

    return BackgroundRecorder(recorder, record)


def build_server(service: Service, drain_s: int) -> uvicorn.Server:
    """The HTTP server of a service, which ends itself `drain_s` seconds after it was told to, and a little."""
    return uvicorn.Server(
        uvicorn.Config(
            build_app(service),
            http="h11",  # unlike httptools, it limits the size of headers
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            h11_max_incomplete_event_size=MOST_HEADER_BYTES,
            timeout_graceful_shutdown=drain_s + _GOODBYE_S,
        )
    )


async def _serve(server: uvicorn.Server, driver: Driver, sock: socket.socket, drain_s: int) -> None:
    """Serve until told to stop or until the driver fails, whose error is raised."""
    driving = asyncio.create_task(driver.run())

    def stop(_: object) -> None:
        server.should_exit = True

    driving.add_done_callback(stop)
    draining = asyncio.create_task(_drain(server, driver, drain_s))
    try:
        await server.serve(sockets=[sock])
    finally:
        draining.cancel()
        driving.cancel()
        await asyncio.wait([driving, draining])
    if not driving.cancelled():
        driving.result()


async def _drain(server: uvicorn.Server, driver: Driver, drain_s: int) -> None:
    """Once the server is to stop, let calls go on for `drain_s` seconds, then end them."""
    while not server.should_exit:
        await asyncio.sleep(_LOOK_S)
    await asyncio.sleep(drain_s)
    driver.put_off_all()
