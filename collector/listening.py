"""Listening: the socket of a server, and the signals that end it."""

from __future__ import annotations

import os
import signal
import socket
from typing import TYPE_CHECKING

from ..errors import FareboxError

if TYPE_CHECKING:
    import uvicorn


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on host and port (0: any free one); `FareboxError` when it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if number and number > 0 else getattr(error, "strerror", None) or error
        raise FareboxError(f"cannot listen on {host}:{port}: {reason}; choose another address or port") from None


def stop_on_signals(server: uvicorn.Server) -> None:
    """Let SIGINT and SIGTERM end the server; uvicorn raises them once more when it is done, to no effect."""

    def stop(*_: object) -> None:
        server.should_exit = True

    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, stop)
