"""The proxy as a server: it listens, reads keys anew every second, and ends with SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from ...engine.server.access import Access
from ...errors import FareboxError
from ...storage.spool.writer import SpoolWriter
from ..hardware import steady_clock
from ..listening import stop_on_signals
from .app import Proxy, Rules
from .keys import KeySource
from .meter import Book
from .upstream import Upstream

MOST_HEADER_BYTES = 64 * 2**10
_LOOK_S = 1.0
_KEEP_ALIVE_S = 75


def open_spool(folder: Path) -> SpoolWriter:
    """A spool of this process under `folder`; raises `FareboxError` when it cannot be written."""
    name = f"proxy-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
    try:
        return SpoolWriter(folder / name)
    except OSError as error:
        raise FareboxError(f"cannot write a spool into {folder}: {error.strerror or error}") from None


def new_book(put: Callable[[object], None], engine_id: str) -> Book:
    """A book for what this process sees of an engine."""
    return Book(put, engine_id, steady_clock())


def build_server(proxy: Proxy, *, max_header_bytes: int = MOST_HEADER_BYTES, drain_s: int = 5) -> uvicorn.Server:
    """The HTTP server before a proxy; requests that run may go on for `drain_s` seconds after it was told to end."""
    return uvicorn.Server(
        uvicorn.Config(
            proxy,
            http="h11",  # unlike httptools, it limits the size of headers
            lifespan="off",
            log_level="critical",  # an answer that is cut as it came is no news
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            ws="none",
            timeout_keep_alive=_KEEP_ALIVE_S,
            h11_max_incomplete_event_size=max_header_bytes,
            timeout_graceful_shutdown=drain_s,
        )
    )


def run(
    upstream: Upstream,
    access: Access,
    keys: KeySource | None,
    spool: SpoolWriter,
    engine_id: str,
    rules: Rules,
    sock: socket.socket,
    *,
    max_header_bytes: int,
    drain_s: int,
    on_warning: Callable[[str], None],
) -> None:
    """Serve on `sock` until SIGINT or SIGTERM; what was served is in the spool then."""
    server = build_server(
        Proxy(upstream, access, new_book(spool.put, engine_id), rules),
        max_header_bytes=max_header_bytes,
        drain_s=drain_s,
    )
    stop_on_signals(server)
    try:
        with asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner:
            runner.run(_serve(server, upstream, access, keys, sock, on_warning))
    finally:
        spool.close()


async def _serve(
    server: uvicorn.Server,
    upstream: Upstream,
    access: Access,
    keys: KeySource | None,
    sock: socket.socket,
    on_warning: Callable[[str], None],
) -> None:
    looking = None if keys is None else asyncio.create_task(_look_for_keys(access, keys, on_warning))
    try:
        await server.serve(sockets=[sock])
    finally:
        upstream.close()
        if looking is not None:
            looking.cancel()


async def _look_for_keys(access: Access, keys: KeySource, on_warning: Callable[[str], None]) -> None:
    """Use the newest keys; while they cannot be read, the last ones stay good, and that is said once."""
    is_told = False
    while True:
        await asyncio.sleep(_LOOK_S)
        try:
            access.use(tuple(await asyncio.to_thread(keys)))
            is_told = False
        except (FareboxError, OSError) as error:
            if not is_told:
                on_warning(f"keys cannot be read, the last ones stay good: {error}")
            is_told = True
