"""A connection to the server behind: it asks one request at a time."""

from __future__ import annotations

import asyncio
import time
from typing import cast

from .answer import Answer, UpstreamError
from .headers import Headers, head

IDLE_S = 2.0
"""A connection that has waited longer is not used again: servers hang up on idle ones, and then a request is lost."""


class Connection(asyncio.Protocol):
    """One connection to a server; `name` is the server's in messages."""

    def __init__(self, name: str, silent_s: float) -> None:
        """`silent_s` is how long the server may take for its first byte, and for each next one."""
        self._name, self._silent_s = name, silent_s
        self._answer: Answer | None = None
        self._free_at = 0.0

    @property
    def is_fresh(self) -> bool:
        """Whether a request may be asked on it."""
        return not self.transport.is_closing() and time.monotonic() - self._free_at < IDLE_S

    def ask(self, method: bytes, target: bytes, headers: Headers, body: bytes, answer: Answer) -> None:
        """Send a request; what comes from now on is its answer."""
        self._answer = answer
        self._silence.begin()
        self.transport.write(head(b"%b %b HTTP/1.1" % (method, target), headers) + body)

    def rest(self) -> None:
        """An answer has come to its end, and another request may follow."""
        self._answer = None
        self._silence.end()
        self._free_at = time.monotonic()
        self.transport.resume_reading()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self.transport = cast("asyncio.Transport", transport)
        self._silence = _Silence(self.transport, self._silent_s)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop; a server that speaks without being asked is hung up on."""
        if self._answer is None:
            self.transport.abort()
            return
        self._silence.heard()
        self._answer.feed(data)

    def eof_received(self) -> None:
        """Called by the event loop, which hangs up then."""
        if self._answer is not None:
            self._answer.end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._silence.end()
        if self._answer is None:
            return
        if self._silence.is_over:
            self._answer.fail(UpstreamError(504, f"{self._name} was silent for {self._silent_s:g} s"))
        else:
            self._answer.fail(UpstreamError(502, f"{self._name} hung up: {exc or 'its answer has no end'}"))


class _Silence:
    """Hangs up a connection on which nothing was heard for `most_s`; one timer, however often something is heard."""

    def __init__(self, transport: asyncio.Transport, most_s: float) -> None:
        self.is_over = False
        """Whether it lasted too long."""
        self._transport, self._most_s = transport, most_s
        self._loop = asyncio.get_running_loop()
        self._heard_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """From now on something is expected."""
        self.heard()
        if self._timer is None:
            self._timer = self._loop.call_later(self._most_s, self._look)

    def heard(self) -> None:
        """Something came."""
        self._heard_at = self._loop.time()

    def end(self) -> None:
        """Nothing is expected any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        left_s = self._heard_at + self._most_s - self._loop.time()
        if left_s > 0:
            self._timer = self._loop.call_later(left_s, self._look)
        else:
            self.is_over = True
            self._transport.abort()


class Call:
    """One request as its client sees it: when the client leaves, so does the connection to the server."""

    def __init__(self) -> None:
        self.is_over = False
        """Whether the client has left."""
        self._transport: asyncio.Transport | None = None

    def hold(self, transport: asyncio.Transport) -> None:
        """The connection that serves it now."""
        self._transport = transport
        if self.is_over:
            transport.abort()

    def let_go(self) -> None:
        """The answer has come to its end: the connection is somebody else's now."""
        self._transport = None

    def hang_up(self) -> None:
        """The client has left."""
        self.is_over = True
        if self._transport is not None:
            self._transport.abort()

    def pause(self) -> None:
        """The client does not keep up: leave the answer with the server."""
        if self._transport is not None:
            self._transport.pause_reading()

    def go_on(self) -> None:
        """The client has caught up."""
        if self._transport is not None:
            self._transport.resume_reading()
