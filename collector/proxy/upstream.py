"""The server behind the proxy: connections to it, and what it answers, piece by piece as it comes."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlsplit

import h11

from ...errors import InputError
from .headers import Headers

IDLE_S = 2.0
"""A connection that has waited longer is not used again: servers hang up on idle ones, and then a request is lost."""
MOST_IDLE = 256
_READ = 2**16
_HEAD = 2**18
"""The longest head of an answer."""
_DEFAULT_PORTS = {"http": 80, "https": 443}


class UpstreamError(Exception):
    """The server behind cannot be reached, is too slow, or makes no sense; `status` is what the client is told."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Address(NamedTuple):
    """Where the server is."""

    scheme: str
    host: str
    port: int
    path: str
    """What comes before every path, without a slash at its end."""

    @classmethod
    def parse(cls, url: str) -> Address:
        """Read `http://HOST:PORT[/PATH]` or `https://…`; raises `InputError`."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise InputError(f"--upstream {url}: {error}") from None
        if parts.scheme not in _DEFAULT_PORTS or not host or parts.query or parts.fragment or parts.username:
            raise InputError(f"--upstream {url}: write it as http://HOST:PORT or https://HOST")
        return cls(parts.scheme, host, port or _DEFAULT_PORTS[parts.scheme], parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        """Host and port, as the `Host` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


class _Silence:
    """Hangs up a connection on which nothing was heard for `most_s`; one timer, however often something is heard."""

    def __init__(self, transport: asyncio.WriteTransport, most_s: float) -> None:
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


@dataclass
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    state: h11.Connection
    silence: _Silence
    free_at: float = 0.0

    @property
    def is_fresh(self) -> bool:
        waited = time.monotonic() - self.free_at
        return waited < IDLE_S and not self.reader.at_eof() and not self.writer.is_closing()


class Answer:
    """What the server answers to one request. Read `pieces` to the end, or hang up the call."""

    def __init__(self, upstream: Upstream, connection: _Connection, head: h11.Response, call: Call) -> None:
        self.status = head.status_code
        self.headers: Headers = list(head.headers)
        self._upstream = upstream
        self._connection = connection
        self._call = call
        self._read: bytes | None = None

    async def whole(self) -> bytes:
        """The whole body, for one that is short; `pieces` gives it again."""
        if self._read is None:
            self._read = b"".join([piece async for piece in self.pieces()])
        return self._read

    async def pieces(self) -> AsyncIterator[bytes]:
        """The body as it comes: everything that one read from the connection has brought is one piece.

        Raises UpstreamError when it ends too early.
        """
        if self._read is not None:
            yield self._read
            return
        state, piece, event = self._connection.state, b"", None
        while not isinstance(event, h11.EndOfMessage):
            event = _parsed(state)
            if isinstance(event, h11.Data):
                piece = piece + event.data if piece else bytes(event.data)
            elif event is h11.NEED_DATA:
                if piece:
                    yield piece
                piece = b""
                await self._upstream.receive(self._connection)
        self._call.let_go()
        self._upstream.put_back(self._connection)
        if piece:
            yield piece


class Upstream:
    """Asks one server, over connections that are kept for the next request."""

    def __init__(
        self, address: Address, *, connect_s: float = 10, silent_s: float = 600, tls: ssl.SSLContext | None = None
    ) -> None:
        """`silent_s` is how long the server may take for its first byte, and for each next one."""
        self.address = address
        self._connect_s, self._silent_s = connect_s, silent_s
        self._tls = (tls or ssl.create_default_context()) if address.scheme == "https" else None
        self._idle: deque[_Connection] = deque(maxlen=MOST_IDLE)

    async def ask(self, method: bytes, target: bytes, headers: Headers, body: bytes, call: Call) -> Answer:
        """Send a request and wait for the head of its answer.

        Raises UpstreamError (502, or 504 when it takes too long).
        """
        connection = await self._connect()
        call.hold(connection.writer.transport)
        connection.silence.begin()
        try:
            self._send(connection, method, target, headers, body)
            while True:
                event = _parsed(connection.state)
                if isinstance(event, h11.Response):
                    return Answer(self, connection, event, call)
                if event is h11.NEED_DATA:
                    await self.receive(connection)
        except BaseException:
            connection.writer.transport.abort()
            raise

    async def receive(self, connection: _Connection) -> None:
        """Wait for more from the server; raises UpstreamError when nothing comes."""
        try:
            data = await connection.reader.read(_READ)
        except OSError as error:
            raise UpstreamError(502, f"{self.address.authority}: {error.strerror or error}") from None
        if not data:
            connection.silence.end()
        if not data and connection.silence.is_over:
            raise UpstreamError(504, f"{self.address.authority} was silent for {self._silent_s:g} s")
        connection.silence.heard()
        connection.state.receive_data(data)

    def put_back(self, connection: _Connection) -> None:
        """An answer has been read to its end: keep the connection, if both sides can go on."""
        connection.silence.end()
        try:
            connection.state.start_next_cycle()
        except h11.ProtocolError:
            connection.writer.close()
            return
        connection.free_at = time.monotonic()
        self._idle.append(connection)

    def close(self) -> None:
        """Hang up all connections that wait."""
        while self._idle:
            self._idle.pop().writer.transport.abort()

    async def _connect(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh:
                return connection
            connection.writer.transport.abort()
        where = self.address
        try:
            async with asyncio.timeout(self._connect_s):
                reader, writer = await asyncio.open_connection(where.host, where.port, ssl=self._tls, limit=2**20)
        except TimeoutError:
            raise UpstreamError(504, f"{where.authority} did not answer within {self._connect_s:g} s") from None
        except OSError as error:
            raise UpstreamError(502, f"cannot reach {where.authority}: {error.strerror or error}") from None
        silence = _Silence(writer.transport, self._silent_s)
        return _Connection(reader, writer, h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD), silence)

    def _send(self, connection: _Connection, method: bytes, target: bytes, headers: Headers, body: bytes) -> None:
        request = h11.Request(method=method, target=target, headers=headers)
        parts = [connection.state.send(request)]
        if body:
            parts.append(connection.state.send(h11.Data(body)))
        parts.append(connection.state.send(h11.EndOfMessage()))
        connection.writer.writelines([part for part in parts if part])


class Call:
    """One request as its client sees it: when the client leaves, so does the connection to the server."""

    def __init__(self) -> None:
        self.is_over = False
        """Whether the client has left."""
        self._transport: asyncio.WriteTransport | None = None

    def hold(self, transport: asyncio.WriteTransport) -> None:
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


def _parsed(state: h11.Connection) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
    try:
        event = state.next_event()
    except h11.RemoteProtocolError as error:
        raise UpstreamError(502, f"the answer makes no sense: {error}") from None
    if isinstance(event, h11.ConnectionClosed):
        raise UpstreamError(502, "the server hung up without an answer")
    return event
