"""An answer of the server behind: read from the bytes of its connection, and poured out as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httptools

from .headers import Headers, first

MOST_HEAD_BYTES = 2**18
"""The longest head of an answer."""
_BODILESS = (204, 304)

Take = Callable[[bytes], None]


class UpstreamError(Exception):
    """The server behind cannot be reached, is too slow, or makes no sense; `status` is what the client is told."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Answer:
    """What the server answers to one request. Wait for its `head`, then `pour` its body to the end.

    A piece is what one read from the connection has brought, and it is handed on in the same turn of the event loop:
    nobody has to be woken for it.
    """

    def __init__(self, method: bytes, let_go: Callable[[bool], None]) -> None:
        """`let_go` is called at the end, whatever it is; with True, another request may follow on the connection."""
        self.status = 0
        self.reason = b""
        self.headers: Headers = []
        self._let_go = let_go
        self._parser = httptools.HttpResponseParser(self)
        self._is_bodiless = method == b"HEAD"
        self._has_head = self._is_complete = self._is_over = False
        self._ends_with_connection = self._keeps_alive = False
        self._head_bytes = 0
        self._parts: list[bytes] = []
        self._take: Take | None = None
        self._whole: bytes | None = None
        self._error: Exception | None = None
        self._waiting: asyncio.Future[None] | None = None

    async def head(self) -> None:
        """Wait until status and headers are there; raises UpstreamError."""
        await self._wait(until=self._has_head)

    async def pour(self, take: Take) -> None:
        """Hand the body to `take`, piece by piece as it comes.

        Raises UpstreamError when it ends too early, and whatever `take` raises.
        """
        if self._whole is not None:
            take(self._whole)
            return
        self._take = take
        self._hand_on()
        await self._wait(until=self._is_complete)

    async def whole(self) -> bytes:
        """The whole body, for one that is short; `pour` gives it again."""
        parts: list[bytes] = []
        await self.pour(parts.append)
        self._whole = b"".join(parts)
        return self._whole

    def feed(self, data: bytes) -> None:
        """Bytes have come from the server."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(UpstreamError(502, f"the answer makes no sense: {error}"))
        if not self._has_head:
            self._head_bytes += len(data)
            if self._head_bytes > MOST_HEAD_BYTES:
                self.fail(UpstreamError(502, "the head of the answer is too long"))
        self._hand_on()
        if self._is_complete:
            self._end()

    def end(self) -> None:
        """The server has hung up: the end of an answer that tells no length."""
        if self._has_head and self._ends_with_connection and not self._is_over:
            self._is_complete, self._keeps_alive = True, False
            self._end()

    def fail(self, error: Exception) -> None:
        """Nothing more will come."""
        if not self._is_complete and self._error is None:
            self._error = error
            self._end()

    def on_message_begin(self) -> None:
        """Called by the parser; a second answer to one request is nobody's."""
        self._keeps_alive = self._keeps_alive and not self._is_complete

    def on_status(self, reason: bytes) -> None:
        """Called by the parser."""
        if not self._has_head:
            self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser; what comes after the head (trailers) stays on this hop."""
        if not self._has_head:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Called by the parser; informational answers (1xx) are not the answer."""
        if self._has_head:
            return
        self.status = self._parser.get_status_code()
        if self.status < 200:
            self.reason, self.headers = b"", []
            return
        coding = first(self.headers, b"transfer-encoding")
        if coding is not None and coding.lower() != "chunked":
            self.fail(UpstreamError(502, f"the answer makes no sense: Transfer-Encoding {coding}"))
        self._has_head = True
        self._ends_with_connection = coding is None and first(self.headers, b"content-length") is None
        if self._is_bodiless:
            self.on_message_complete()
        self._wake()

    def on_body(self, data: bytes) -> None:
        """Called by the parser."""
        if not self._is_complete:
            self._parts.append(data)

    def on_message_complete(self) -> None:
        """Called by the parser."""
        if self._has_head and not self._is_complete:
            self._is_complete, self._keeps_alive = True, self._parser.should_keep_alive()

    def _hand_on(self) -> None:
        if self._take is None or not self._parts:
            return
        piece = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        try:
            self._take(piece)
        except Exception as error:
            self._error = error
            self._end()

    def _end(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._let_go(self._keeps_alive and self._error is None)
        self._wake()

    async def _wait(self, *, until: bool) -> None:
        if not until and self._error is None:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        if self._error is not None:
            raise self._error

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)
