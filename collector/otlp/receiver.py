"""The receiver: `POST /v1/traces` as the OTLP specification 1.9 has it, requests into a spool."""

from __future__ import annotations

import json
import socket
import threading
import zlib
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import uvicorn

from ..usage.event import request_event
from .requests import SPAN, SpanError, request_of
from .spans import Span, from_json, from_protobuf

MOST_BYTES = 16 * 2**20
"""The largest body, also once it is unpacked."""
_GZIP = 31
_JSON, _PROTOBUF = "application/json", "application/x-protobuf"
_READERS: dict[str, Callable[[bytes], list[Span]]] = {_JSON: from_json, _PROTOBUF: from_protobuf}

Message = MutableMapping[str, Any]
Put = Callable[[Any], None]


class OtlpReceiver:
    """Listens for traces on `sock` and puts a `request` event for each request of an engine.

    `start` and `stop` may be called from any thread, once each; the socket is closed with the end.
    """

    def __init__(
        self,
        sock: socket.socket,
        put: Put,
        engine_id: str | None = None,
        accepts: Callable[[], bool] = lambda: True,
    ) -> None:
        """`engine_id` names the engine of services without a name; while not `accepts()`, senders keep their spans."""
        self.spans = 0
        """Spans of requests taken so far."""
        self.rejected = 0
        """Spans of requests that were of no use."""
        self._sock, self._put, self._engine_id, self._accepts = sock, put, engine_id, accepts
        self._server = uvicorn.Server(
            uvicorn.Config(
                self._serve,
                interface="asgi3",
                http="h11",
                lifespan="off",
                log_level="critical",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                timeout_graceful_shutdown=2,
            )
        )
        self._thread = threading.Thread(target=self._run, name="farebox-otlp", daemon=True)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what was sent, and end."""
        self._server.should_exit = True
        self._thread.join()
        self._sock.close()

    @property
    def is_alive(self) -> bool:
        """Whether it listens."""
        return self._thread.is_alive()

    def _run(self) -> None:
        self._server.run(sockets=[self._sock])

    async def _serve(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        status, why = _refusal(scope["method"], scope["path"], kind, headers.get("content-encoding", "identity"))
        if status == 200 and not self._accepts():
            status, why = 503, "there is no room for more: try again later"
        if status == 200:
            body = await _body(receive)
            status, why = self._take(body, kind, headers.get("content-encoding", "identity"))
        out = kind if kind in _READERS else _JSON
        answer = _answer(status, why, out)
        lines = [(b"content-type", out.encode()), (b"content-length", str(len(answer)).encode())]
        if status == 503:
            lines.append((b"retry-after", b"5"))
        await send({"type": "http.response.start", "status": status, "headers": lines})
        await send({"type": "http.response.body", "body": answer})

    def _take(self, body: bytes | None, kind: str, encoding: str) -> tuple[int, str | int]:
        """Take a body; returns the status, and why it is refused or how many spans of it are."""
        try:
            plain = _unpacked(body, encoding)
            if plain is None:
                return 413, f"at most {MOST_BYTES} bytes are read"
            spans = _READERS[kind](plain)
        except (ValueError, TypeError, zlib.error) as error:
            return 400, f"not an ExportTraceServiceRequest: {error}"
        rejected = 0
        for span in spans:
            if span.name != SPAN:
                continue
            try:
                self._put(request_event(request_of(span, self._engine_id)))
                self.spans += 1
            except SpanError:
                rejected += 1
        self.rejected += rejected
        return 200, rejected


def _refusal(method: str, path: str, kind: str, encoding: str) -> tuple[int, str]:
    if path != "/v1/traces":
        return 404, "only /v1/traces is here"
    if method != "POST":
        return 405, "send traces by POST"
    if kind not in _READERS:
        return 415, f"send {_PROTOBUF} or {_JSON}"
    if encoding not in ("identity", "gzip"):
        return 415, "Content-Encoding may be gzip"
    return 200, ""


async def _body(receive: Callable[[], Awaitable[Message]]) -> bytes | None:
    """The body; None when it is too large, of which no more is kept."""
    parts = bytearray()
    is_fine = True
    while True:
        message = await receive()
        parts += message.get("body", b"") if is_fine else b""
        is_fine = is_fine and len(parts) <= MOST_BYTES
        if message["type"] == "http.disconnect" or not message.get("more_body"):
            return bytes(parts) if is_fine else None


def _unpacked(body: bytes | None, encoding: str) -> bytes | None:
    if body is None or encoding == "identity":
        return body
    unpack = zlib.decompressobj(_GZIP)
    plain = unpack.decompress(body, MOST_BYTES + 1)
    if len(plain) > MOST_BYTES:
        return None
    if not unpack.eof:
        raise ValueError("the gzip stream is cut")
    return plain


def _answer(status: int, told: str | int, kind: str) -> bytes:
    """An ExportTraceServiceResponse, with what was rejected of it, or a google.rpc.Status."""
    if kind == _JSON:
        if isinstance(told, str):
            return json.dumps({"code": 3, "message": told}).encode()
        partial = {"partialSuccess": {"rejectedSpans": str(told), "errorMessage": _WHY}}
        return json.dumps(partial if told else {}).encode()
    if isinstance(told, str):
        return b"\x08\x03" + _text(2, told)
    if not told:
        return b""
    partial = b"\x08" + _varint(told) + _text(2, _WHY)
    return b"\x0a" + _varint(len(partial)) + partial


_WHY = "spans of requests need gen_ai.request.id and a start"


def _text(field: int, text: str) -> bytes:
    raw = text.encode()
    return bytes([field << 3 | 2]) + _varint(len(raw)) + raw


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
