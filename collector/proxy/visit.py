"""A visit: one request of a client, and the answer that it gets."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import unquote_to_bytes
from uuid import uuid4

from ...engine.server.errors import ApiError
from .answer import Answer, UpstreamError
from .connection import Call
from .headers import Headers, end_to_end, first, head

REQUEST_ID = b"x-request-id"
BODY_SILENT_S = 60.0
"""How long a client may be silent in the middle of its body."""
_BODILESS = (204, 304)


class ClientLeftError(Exception):
    """The client hung up before its request was read."""


class Asking(NamedTuple):
    """The head of a request, as it came; names of headers are in lower case."""

    method: str
    target: bytes
    headers: Headers
    is_old: bool
    """Whether it is of HTTP/1.0, which knows no chunks."""
    keeps_alive: bool
    """Whether another request may follow on its connection."""


class Visit:
    """The client's side of one request: `feed` and `complete` take its body, the rest writes its answer."""

    def __init__(self, asking: Asking, transport: asyncio.WriteTransport) -> None:
        self.method, self.target, self.headers, self._is_old, self.keeps_alive = asking
        self.path = unquote_to_bytes(self.target.partition(b"?")[0]).decode("latin-1")
        self.call = Call()
        self.request_id = first(self.headers, REQUEST_ID)
        """What the client calls its request; None: nothing."""
        self.made_id = self.request_id or uuid4().hex
        self.is_read = False
        """Whether all of the request has come."""
        self.has_begun = self.is_answered = False
        self._transport = transport
        self._parts: list[bytes] = []
        self._size = 0
        self._error: ApiError | None = None
        self._news = asyncio.Event()
        self._is_chunked = self._is_bodiless = False

    def credentials(self) -> dict[str, str]:
        """The headers by name, the first of each; a key in Anthropic's or Azure's header is one, too."""
        found = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(self.headers)}
        key = found.get("x-api-key") or found.get("api-key")
        if key and "authorization" not in found:
            found["authorization"] = f"Bearer {key}"
        return found

    def feed(self, data: bytes) -> None:
        """More of the body has come; once the answer has begun, nobody reads it."""
        if not self.has_begun:
            self._parts.append(data)
            self._size += len(data)
            self._news.set()

    def complete(self) -> None:
        """All of the request has come."""
        self.is_read = True
        self._news.set()

    def spoil(self, error: ApiError) -> None:
        """What comes of the request is wrong; what has come whole is not touched by it."""
        if not self.is_read:
            self._error = error
            self._news.set()

    def hang_up(self) -> None:
        """The client has left."""
        self.call.hang_up()
        self._news.set()

    async def body(self, most: int) -> bytes:
        """The whole body; ClientLeftError when it never ends.

        Raises `ApiError`: 413 when it is larger than `most`, 408 when nothing more of it comes.
        """
        length = first(self.headers, b"content-length")
        if length is not None and int(length) > most:
            raise _too_large(most)
        if not self.is_read and (first(self.headers, b"expect") or "").lower() == "100-continue" and not self._is_old:
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not self._has_come(most):
            self._news.clear()
            try:
                async with asyncio.timeout(BODY_SILENT_S):
                    await self._news.wait()
            except TimeoutError:
                raise ApiError(408, f"Nothing more of the body came for {BODY_SILENT_S:g} s.") from None
        return b"".join(self._parts)

    def _has_come(self, most: int) -> bool:
        """Whether all of the body is there; raises what keeps it from coming."""
        if self.call.is_over:
            raise ClientLeftError
        if self._error is not None:
            raise self._error
        if self._size > most:
            raise _too_large(most)
        return self.is_read

    def begin(self, answer: Answer, *, edited: bool) -> None:
        """Send the head of the answer; the length of an edited one is not known."""
        headers = end_to_end(answer.headers, *([b"content-length"] if edited else []))
        if first(headers, REQUEST_ID) is None:
            headers.append((REQUEST_ID, self.made_id.encode("latin-1")))
        self._begin(answer.status, answer.reason, headers)

    def write(self, piece: bytes) -> None:
        """Send a piece of the answer's body."""
        if not piece or self._is_bodiless or self._transport.is_closing():
            return
        self._transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if self._is_chunked else piece)

    def finish(self) -> None:
        """The answer is complete."""
        if self._is_chunked and not self._transport.is_closing():
            self._transport.write(b"0\r\n\r\n")
        self.is_answered = True

    def fail(self, error: UpstreamError) -> None:
        """There is no (more) answer: say so, or, in the middle of one, leave it cut as it came."""
        if not self.has_begun and not self.call.is_over:
            self.refuse(ApiError(error.status, error.message))

    def refuse(self, error: ApiError) -> None:
        """Answer with an error in OpenAI's shape."""
        headers, body = refusal(error)
        self._begin(error.status, b"", [*headers, (REQUEST_ID, self.made_id.encode("latin-1"))])
        self.write(body)
        self.finish()

    def _begin(self, status: int, reason: bytes, headers: Headers) -> None:
        self.has_begun = True
        self._parts.clear()
        self.keeps_alive = self.keeps_alive and self.is_read and not self._is_old
        self._is_bodiless = self.method == "HEAD" or status in _BODILESS
        has_length = self._is_bodiless or first(headers, b"content-length") is not None
        self._is_chunked = not has_length and not self._is_old
        if self._is_chunked:
            headers.append((b"transfer-encoding", b"chunked"))
        if not self.keeps_alive:
            headers.append((b"connection", b"close"))
        if not self._transport.is_closing():
            self._transport.write(head(status_line(status, reason), headers))


def refusal(error: ApiError) -> tuple[Headers, bytes]:
    """Headers and body of an error in OpenAI's shape."""
    body = json.dumps(error.body()).encode()
    return [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())], body


def status_line(status: int, reason: bytes = b"") -> bytes:
    """The first line of an answer, with the usual reason where the server gave none."""
    if not reason and any(status == known for known in HTTPStatus):
        reason = HTTPStatus(status).phrase.encode()
    return b"HTTP/1.1 %d %b" % (status, reason)


def _too_large(most: int) -> ApiError:
    return ApiError(413, f"The body is too large: at most {most} bytes are read.")
