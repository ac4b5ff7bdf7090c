"""A visit: one request of a client, and the answer that it gets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from uuid import uuid4

from ...engine.server.errors import ApiError, error_body
from .headers import Headers, end_to_end, first
from .upstream import Answer, Call, UpstreamError

REQUEST_ID = b"x-request-id"
BODY_SILENT_S = 60.0
"""How long a client may be silent in the middle of its body."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class ClientLeftError(Exception):
    """The client hung up before its request was read."""


class Visit:
    """The client's side of one request, over ASGI."""

    def __init__(self, scope: Message, receive: Receive, send: Send) -> None:
        query: bytes = scope["query_string"]
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.target: bytes = scope["raw_path"] + (b"?" + query if query else b"")
        self.headers: Headers = scope["headers"]
        self.call = Call()
        self.request_id = first(self.headers, REQUEST_ID)
        """What the client calls its request; None: nothing."""
        self.made_id = self.request_id or uuid4().hex
        self._receive, self._send = receive, send
        self._has_begun = False
        self._watch: asyncio.Task[None] | None = None

    def credentials(self) -> dict[str, str]:
        """The headers by name, the first of each; a key in Anthropic's or Azure's header is one, too."""
        found = {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(self.headers)}
        key = found.get("x-api-key") or found.get("api-key")
        if key and "authorization" not in found:
            found["authorization"] = f"Bearer {key}"
        return found

    async def body(self, most: int) -> bytes:
        """The whole body; ClientLeftError when it never ends.

        Raises `ApiError`: 413 when it is larger than `most`, 408 when nothing more of it comes.
        """
        length = first(self.headers, b"content-length")
        if length is not None and int(length) > most:
            raise _too_large(most)
        parts: list[bytes] = []
        size = 0
        while True:
            try:
                async with asyncio.timeout(BODY_SILENT_S):
                    message = await self._receive()
            except TimeoutError:
                raise ApiError(408, f"Nothing more of the body came for {BODY_SILENT_S:g} s.") from None
            if message["type"] == "http.disconnect":
                raise ClientLeftError
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > most:
                raise _too_large(most)
            if not message.get("more_body"):
                return b"".join(parts)

    def watch(self) -> None:
        """From now on, hang up at the server when the client does."""
        self._watch = asyncio.create_task(self._wait_for_the_end())

    async def begin(self, answer: Answer, *, edited: bool) -> None:
        """Send the head of the answer; the length of an edited one is not known."""
        headers = end_to_end(answer.headers, *([b"content-length"] if edited else []))
        if first(headers, REQUEST_ID) is None:
            headers.append((REQUEST_ID, self.made_id.encode("latin-1")))
        self._has_begun = True
        await self._send({"type": "http.response.start", "status": answer.status, "headers": headers})

    async def write(self, piece: bytes) -> None:
        """Send a piece of the answer's body."""
        await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def finish(self) -> None:
        """The answer is complete."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def fail(self, error: UpstreamError) -> None:
        """There is no (more) answer: say so, or, in the middle of one, leave it cut as it came."""
        if not self._has_begun and not self.call.is_over:
            await self.refuse(error.status, error.message)

    async def refuse(self, status: int, message: str, param: str | None = None) -> None:
        """Answer with an error in OpenAI's shape."""
        self._has_begun = True
        body = json.dumps(error_body(status, message, param)).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (REQUEST_ID, self.made_id.encode("latin-1")),
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    def leave(self) -> None:
        """The visit is over, whatever the server still says."""
        if self._watch is not None:
            self._watch.cancel()
        self.call.hang_up()

    async def _wait_for_the_end(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.call.hang_up()


def _too_large(most: int) -> ApiError:
    return ApiError(413, f"The body is too large: at most {most} bytes are read.")
