"""A proxy on a free port before a server that does as a script says, byte by byte, and clients that speak raw HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import h11

from farebox.collector.listening import listen
from farebox.collector.proxy.app import Proxy, Rules
from farebox.collector.proxy.server import Server, new_book
from farebox.collector.proxy.upstream import Address, Upstream
from farebox.engine.server.access import Access

Script = Callable[["Asking"], Awaitable[None]]


@dataclass
class Asking:
    """One request as the scripted server sees it, and its end of the connection."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    writer: asyncio.StreamWriter
    reader: asyncio.StreamReader

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    async def say(self, data: bytes, pause: float = 0) -> None:
        self.writer.write(data)
        await self.writer.drain()
        await asyncio.sleep(pause)

    async def answer(self, body: bytes, kind: str = "application/json", status: str = "200 OK", more: str = "") -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        await self.say(head.encode() + body)

    async def stream(self, *pieces: bytes, pause: float = 0.002, kind: str = "text/event-stream") -> None:
        await self.say(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for piece in pieces:
            await self.say(b"%x\r\n%b\r\n" % (len(piece), piece), pause)
        await self.say(b"0\r\n\r\n")


@dataclass
class Reply:
    """What a client got."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes
    pieces: list[bytes] = field(default_factory=list)

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class CutError(Exception):
    """The answer ended before its end; `reply` is what came."""

    def __init__(self, reply: Reply) -> None:
        super().__init__("cut")
        self.reply = reply


@dataclass
class Proxied:
    """A proxy that runs: what it recorded, what the server behind was asked, and how to talk to it."""

    port: int
    told: list[dict[str, Any]]
    asked: list[Asking]
    server: Server

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [event["request"] for event in self.told if "request" in event]

    def tokens(self) -> tuple[int, int, int]:
        """Prompt, cached and output tokens in all `usage` events."""
        names = ("prompt_tokens", "cached_tokens", "output_tokens")
        return tuple(sum(event["usage"][name] for event in self.told if "usage" in event) for name in names)  # type: ignore[return-value]

    async def ask(
        self, path: str = "/v1/chat/completions", body: Any = None, method: str = "POST", **headers: str
    ) -> Reply:
        sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        lines = [("Host", "proxy"), ("Content-Type", "application/json"), ("Content-Length", str(len(sent)))]
        lines += [(name.replace("_", "-"), value) for name, value in headers.items()]
        head = "".join(f"{name}: {value}\r\n" for name, value in lines)
        return await self.raw(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + sent)

    async def raw(self, sent: bytes) -> Reply:
        """Send bytes on a connection of their own and read one answer; raises CutError."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(sent)
            return await read_reply(reader, sent.partition(b" ")[0])
        finally:
            writer.close()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not holds():
                await asyncio.sleep(0.002)


async def read_reply(reader: asyncio.StreamReader, method: bytes = b"POST") -> Reply:
    state = h11.Connection(h11.CLIENT)
    state.send(h11.Request(method=method, target="/", headers=[("Host", "x")]))
    state.send(h11.EndOfMessage())
    reply = Reply(0, [], b"")
    while True:
        try:
            event = state.next_event()
            if event is h11.NEED_DATA:
                async with asyncio.timeout(20):
                    state.receive_data(await reader.read(2**16))
                continue
        except (h11.RemoteProtocolError, ConnectionError):
            raise CutError(reply) from None
        if isinstance(event, h11.Response):
            reply.status = event.status_code
            reply.headers = [(name.decode(), value.decode("latin-1")) for name, value in event.headers]
        elif isinstance(event, h11.Data):
            reply.body += event.data
            reply.pieces.append(bytes(event.data))
        elif isinstance(event, h11.EndOfMessage):
            return reply
        elif isinstance(event, h11.ConnectionClosed):
            raise CutError(reply)


@asynccontextmanager
async def scripted(script: Script, asked: list[Asking]) -> AsyncIterator[int]:
    """A server that reads requests and lets `script` answer them; yields its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (asking := await _read_request(reader, writer)) is not None:
                asked.append(asking)
                await script(asking)
        except (ConnectionError, h11.ProtocolError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asking | None:
    state = h11.Connection(h11.SERVER)
    head, body = None, b""
    while True:
        event = state.next_event()
        if event is h11.NEED_DATA:
            state.receive_data(await reader.read(2**16))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            headers = [(name.decode(), value.decode("latin-1")) for name, value in head.headers]
            return Asking(head.method.decode(), head.target.decode(), headers, body, writer, reader)
        elif isinstance(event, h11.ConnectionClosed):
            return None


@asynccontextmanager
async def proxying(
    upstream_port: int,
    access: Access | None = None,
    *,
    max_header_bytes: int = 65536,
    silent_s: float = 20,
    **rules: Any,
) -> AsyncIterator[Proxied]:
    told: list[dict[str, Any]] = []
    upstream = Upstream(Address.parse(f"http://127.0.0.1:{upstream_port}"), silent_s=silent_s, connect_s=2)
    proxy = Proxy(upstream, access or Access(), new_book(told.append, "engine"), Rules(**rules))
    server = Server(proxy, max_header_bytes=max_header_bytes, drain_s=1)
    with listen("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        running = asyncio.create_task(server.serve(sock))
        try:
            yield Proxied(port, told, [], server)
        finally:
            server.stop()
            await running
            upstream.close()
