"""The proxy as a server: it listens, reads keys anew every second, and ends with SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Callable
from pathlib import Path

from ...engine.server.access import Access
from ...errors import FareboxError
from ...storage.spool.writer import SpoolWriter
from ..hardware import steady_clock
from .app import Proxy, Rules
from .client import Client
from .keys import KeySource
from .meter import Book
from .upstream import Upstream

MOST_HEADER_BYTES = 64 * 2**10
_LOOK_S = 1.0
_DRAIN_LOOK_S = 0.05
BACKLOG = 2048


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


class Server:
    """Listens, and lets `proxy` serve; requests that run may go on for `drain_s` seconds after it was told to stop."""

    def __init__(self, proxy: Proxy, *, max_header_bytes: int = MOST_HEADER_BYTES, drain_s: float = 5) -> None:
        self._proxy, self._max_header_bytes, self._drain_s = proxy, max_header_bytes, drain_s
        self._clients: set[Client] = set()
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Take no more requests, and end."""
        self._stopping.set()

    async def serve(self, sock: socket.socket) -> None:
        """Serve on `sock` until it is told to stop."""
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(self._client, sock=sock, backlog=BACKLOG)
        await self._stopping.wait()
        listening.close()
        until = loop.time() + self._drain_s
        for client in tuple(self._clients):
            client.finish_up()
        while self._clients and loop.time() < until:
            await asyncio.sleep(_DRAIN_LOOK_S)
        left = [client for client in self._clients if client.task is not None]
        for client in tuple(self._clients):
            client.transport.abort()
        await asyncio.gather(*(client.task for client in left if client.task is not None), return_exceptions=True)

    def _client(self) -> Client:
        return Client(self._proxy.serve, self._max_header_bytes, self._clients)


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
    proxy = Proxy(upstream, access, new_book(spool.put, engine_id), rules)
    try:
        with asyncio.Runner() as runner:
            server = Server(proxy, max_header_bytes=max_header_bytes, drain_s=drain_s)
            for signum in (signal.SIGINT, signal.SIGTERM):
                runner.get_loop().add_signal_handler(signum, server.stop)
            runner.run(_serve(server, upstream, access, keys, sock, on_warning))
    finally:
        spool.close()


async def _serve(
    server: Server,
    upstream: Upstream,
    access: Access,
    keys: KeySource | None,
    sock: socket.socket,
    on_warning: Callable[[str], None],
) -> None:
    looking = None if keys is None else asyncio.create_task(_look_for_keys(access, keys, on_warning))
    try:
        await server.serve(sock)
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
