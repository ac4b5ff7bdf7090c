"""A connection of a client: its requests are read one after the other, and each is answered before the next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import cast

import httptools

from ...engine.server.errors import ApiError
from .headers import Headers, head
from .visit import Asking, Visit, refusal, status_line

HEAD_S = 30.0
"""How long the head of a request may take."""
KEEP_ALIVE_S = 75.0
"""How long a connection waits for its next request, or for its client to read the end of the last answer."""
LINGER_S = 5.0
"""How long a client that was refused while it sent may go on: hanging up at once would take the answer from it."""

Serve = Callable[[Visit], Awaitable[None]]


class Client(asyncio.Protocol):
    """One connection; `serve` answers a visit, `clients` are all that are connected."""

    def __init__(self, serve: Serve, most_head_bytes: int, clients: set[Client]) -> None:
        self._serve, self._most_head_bytes, self._clients = serve, most_head_bytes, clients
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._target = b""
        self._headers: Headers = []
        self._head_bytes = 0
        self._is_in_head = False
        self._coming: Visit | None = None
        self._served: Visit | None = None
        self._waiting: deque[Visit] = deque()
        self._is_deaf = self._is_last = self._is_full = False
        self._fault: ApiError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.task: asyncio.Task[None] | None = None
        """What answers the newest request."""

    def finish_up(self) -> None:
        """Serve what is asked already, and nothing after it."""
        self._is_last = True
        if self._served is None:
            self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self.transport = cast("asyncio.Transport", transport)
        self._clients.add(self)
        self._wait(HEAD_S)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        if self._is_deaf:
            return
        was_in_head = self._is_in_head
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._decline(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError as error:
            self._fault = self._fault or ApiError(400, f"The request makes no sense: {error}.")
        if was_in_head and self._is_in_head:
            self._head_bytes += len(data)
            self._check_head()
        if self._fault is not None:
            self._refuse(self._fault)

    def eof_received(self) -> None:
        """Called by the event loop, which hangs up then."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._clients.discard(self)
        self._wait(None)
        for visit in (self._served, *self._waiting):
            if visit is not None:
                visit.hang_up()
        self._waiting.clear()

    def pause_writing(self) -> None:
        """Called by the event loop: the client reads more slowly than the server writes."""
        self._is_full = True
        if self._served is not None:
            self._served.call.pause()

    def resume_writing(self) -> None:
        """Called by the event loop."""
        self._is_full = False
        if self._served is not None:
            self._served.call.go_on()
        else:
            self._next()

    def on_message_begin(self) -> None:
        """Called by the parser."""
        self._target, self._headers, self._head_bytes = b"", [], 0
        self._is_in_head = True
        self._coming = None
        if self._served is None:
            self._wait(HEAD_S)

    def on_url(self, target: bytes) -> None:
        """Called by the parser."""
        self._target += target

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser; what comes after the body (trailers) stays on this hop."""
        if self._is_in_head:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        self._is_in_head = False
        if self._parser.should_upgrade():
            return
        self._head_bytes = len(self._target) + sum(len(name) + len(value) + 4 for name, value in self._headers)
        self._check_head()
        version, keeps_alive = self._parser.get_http_version(), self._parser.should_keep_alive()
        if version not in ("1.0", "1.1"):
            self._fault = self._fault or ApiError(505, "The proxy speaks HTTP/1.1.")
        if self._fault is not None:
            return
        method = self._parser.get_method().decode()
        visit = Visit(Asking(method, self._target, self._headers, version == "1.0", keeps_alive), self.transport)
        self._coming = visit
        self._waiting.append(visit)
        if self._served is None:
            self._next()
        if self._waiting:
            self.transport.pause_reading()

    def on_body(self, data: bytes) -> None:
        """Called by the parser."""
        if self._coming is not None:
            self._coming.feed(data)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        if self._coming is not None:
            self._coming.complete()

    def _decline(self, rest: bytes) -> None:
        """Read a request without its offer of another protocol (h2c, WebSocket), which nobody has to take."""
        method = self._parser.get_method()
        if method == b"CONNECT":
            self._refuse(ApiError(400, "The proxy serves paths of its own server only."))
            return
        headers = [(name, value) for name, value in self._headers if name != b"upgrade"]
        version = self._parser.get_http_version().encode()
        self._parser = httptools.HttpRequestParser(self)
        self.data_received(head(b"%b %b HTTP/%b" % (method, self._target, version), headers) + rest)

    def _check_head(self) -> None:
        if self._head_bytes > self._most_head_bytes:
            most = self._most_head_bytes
            self._fault = ApiError(431, f"The head of the request is too long: at most {most} bytes are read.")

    def _next(self) -> None:
        """Serve who waits, once the client has read enough of what it was answered before."""
        if not self._waiting or self._is_full:
            return
        self._wait(None)
        self._served = self._waiting.popleft()
        self.task = self._loop.create_task(self._answer(self._served))
        if not self._waiting:
            self.transport.resume_reading()

    async def _answer(self, visit: Visit) -> None:
        try:
            await self._serve(visit)
        except Exception:
            if not visit.has_begun:
                visit.refuse(ApiError(500, "The proxy failed; what it wrote to its standard error says why."))
            raise
        finally:
            self._served = None
            if not self.transport.is_closing():
                self._go_on(visit)

    def _go_on(self, visit: Visit) -> None:
        """After an answer: the next request, or the end."""
        if self._is_last or not (visit.is_answered and visit.keeps_alive):
            self._hang_up(lingers=not visit.is_read)
            return
        self._wait(HEAD_S if self._is_in_head else KEEP_ALIVE_S)
        self._next()

    def _refuse(self, error: ApiError) -> None:
        """Nothing more is understood on this connection; what was asked before is answered first."""
        self._is_deaf = self._is_last = True
        if self._served is not None:
            self._served.spoil(error)
            return
        headers, body = refusal(error)
        self.transport.write(head(status_line(error.status), [*headers, (b"connection", b"close")]) + body)
        self._hang_up(lingers=True)

    def _hang_up(self, *, lingers: bool) -> None:
        """Close the connection, or (`lingers`) let the client first read the answer while it still sends."""
        self._is_deaf = True
        self._waiting.clear()
        self._wait(LINGER_S if lingers else KEEP_ALIVE_S)
        if lingers:
            self.transport.resume_reading()
            self.transport.write_eof()
        else:
            self.transport.close()

    def _wait(self, most_s: float | None) -> None:
        """Until something changes, wait so long at most; None: as long as it takes."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if most_s is None else self._loop.call_later(most_s, self._give_up)

    def _give_up(self) -> None:
        if self._is_in_head and not self._is_deaf:
            self._refuse(ApiError(408, f"The head of the request did not come within {HEAD_S:g} s."))
        else:
            self.transport.abort()
