"""The server behind the proxy: where it is, and the connections to it that are kept."""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from typing import NamedTuple
from urllib.parse import urlsplit

from ...errors import InputError
from .answer import Answer, UpstreamError
from .connection import Call, Connection
from .headers import Headers

MOST_IDLE = 256
_DEFAULT_PORTS = {"http": 80, "https": 443}


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


class Upstream:
    """Asks one server, over connections that are kept for the next request."""

    def __init__(
        self, address: Address, *, connect_s: float = 10, silent_s: float = 600, tls: ssl.SSLContext | None = None
    ) -> None:
        """`silent_s` is how long the server may take for its first byte, and for each next one."""
        self.address = address
        self._connect_s, self._silent_s = connect_s, silent_s
        self._tls = (tls or ssl.create_default_context()) if address.scheme == "https" else None
        self._idle: deque[Connection] = deque(maxlen=MOST_IDLE)

    async def ask(self, method: bytes, target: bytes, headers: Headers, body: bytes, call: Call) -> Answer:
        """Send a request and wait for the head of its answer.

        Raises UpstreamError (502, or 504 when it takes too long).
        """
        connection = await self._connect()

        def let_go(is_reusable: bool) -> None:
            call.let_go()
            self._put_back(connection, is_reusable)

        answer = Answer(method, let_go)
        call.hold(connection.transport)
        try:
            connection.ask(method, target, headers, body, answer)
            await answer.head()
        except BaseException:
            connection.transport.abort()
            raise
        return answer

    def close(self) -> None:
        """Hang up all connections that wait."""
        while self._idle:
            self._idle.pop().transport.abort()

    def _put_back(self, connection: Connection, is_reusable: bool) -> None:
        if not is_reusable:
            connection.transport.abort()
            return
        connection.rest()
        if len(self._idle) == MOST_IDLE:
            self._idle.popleft().transport.abort()
        self._idle.append(connection)

    async def _connect(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh:
                return connection
            connection.transport.abort()
        where, loop = self.address, asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connect_s):
                _, connection = await loop.create_connection(
                    lambda: Connection(where.authority, self._silent_s), where.host, where.port, ssl=self._tls
                )
        except TimeoutError:
            raise UpstreamError(504, f"{where.authority} did not answer within {self._connect_s:g} s") from None
        except OSError as error:
            raise UpstreamError(502, f"cannot reach {where.authority}: {error.strerror or error}") from None
        return connection
