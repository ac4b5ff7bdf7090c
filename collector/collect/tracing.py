"""Spans of requests as a source of the daemon: received over OTLP/HTTP into a spool of the store, like all requests."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from ...errors import InputError
from ...storage.layout import Layout
from ...storage.spool.writer import SpoolWriter
from ..config.sources import OtlpConfig
from ..listening import listen
from ..otlp.receiver import OtlpReceiver
from .source import Look

if TYPE_CHECKING:
    from ...storage.store import Store


class TraceSource:
    """Listens from its first look on; while its spool loses events, senders are asked to keep their spans."""

    kind = "otlp"
    period_s = 1.0

    def __init__(self, config: OtlpConfig, store: Store) -> None:
        self.name = f"otlp:{config.listen}"
        self._config = config
        self._spools = Layout(store.path).spools
        self._writer: SpoolWriter | None = None
        self._receiver: OtlpReceiver | None = None

    def look(self) -> Look:
        """Begin to listen, or see whether it still does; FareboxError when the address is taken."""
        if self._receiver is None or not self._receiver.is_alive:
            self._listen()
        receiver = self._receiver
        if receiver is not None and receiver.rejected:
            return Look("degraded", f"{receiver.rejected} spans of requests were of no use: no engine, or no times")
        return Look("up")

    def close(self) -> None:
        """Answer what was sent, and write the rest of the spool."""
        if self._receiver is not None:
            self._receiver.stop()
            self._receiver = None
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _listen(self) -> None:
        host, _, port = self._config.listen.rpartition(":")
        if not host or not port.isdigit():
            raise InputError(f"{self._config.listen!r} is not HOST:PORT, e.g. 127.0.0.1:4318")
        sock = listen(host.strip("[]"), int(port))
        if self._writer is None:
            self._writer = SpoolWriter(self._spools / f"otlp-{os.getpid()}-{time.time_ns()}")
        writer = self._writer
        lost = writer.dropped
        receiver = OtlpReceiver(sock, writer.put, self._config.engine, lambda: writer.dropped == lost)
        receiver.start()
        self._receiver = receiver
