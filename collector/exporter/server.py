"""The exporter's HTTP server: one page, in the format that the reader asks for."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, start_http_server

from ...errors import FareboxError, InputError
from .page import FareboxPage


@contextmanager
def exporting(page: FareboxPage, listen: str) -> Generator[tuple[str, int]]:
    """Serve `page` on HOST:PORT (port 0: any free one) while this is held; gives the address.

    OpenMetrics, with `_created`, goes to whoever accepts it, the classic format to everybody else.
    """
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535:
        raise InputError(f"{listen!r} is not HOST:PORT, e.g. 127.0.0.1:9464")
    registry = CollectorRegistry()
    registry.register(page)
    try:
        server, thread = start_http_server(int(port), host.strip("[]") or "127.0.0.1", registry)
    except OSError as error:
        raise FareboxError(f"cannot listen on {listen}: {error.strerror or error}; choose another --listen") from None
    try:
        yield str(server.server_name), server.server_port
    finally:
        _end(server, thread)


def _end(server: WSGIServer, thread: threading.Thread) -> None:
    server.shutdown()
    server.server_close()
    thread.join()
