"""Connections of clients: several requests on one, slow ones, rude ones, and the end of the proxy."""

import asyncio
import json
import socket

import pytest
from proxy_answers import CHAT, DONE, chunk, last, usage
from proxy_wire import CutError, read_reply, scripted

from farebox.collector.proxy import client
from farebox.collector.proxy.connection import Call
from farebox.collector.proxy.upstream import Address, Upstream


def asking(body, path="/v1/chat/completions", more=""):
    sent = json.dumps(body).encode()
    return f"POST {path} HTTP/1.1\r\nHost: x\r\n{more}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


@pytest.fixture
async def echoing(start):
    """A proxy before a server that says what it was asked."""

    async def script(asked):
        await asked.answer(asked.body or asked.target.encode(), "text/plain")

    return await start(script)


@pytest.fixture
async def connect():
    """Open connections that are closed with the test."""
    writers = []

    async def begin(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writers.append(writer)
        return reader, writer

    yield begin
    for writer in writers:
        writer.close()


async def test_requests_on_one_connection_are_answered_in_their_order(echoing, connect):
    reader, writer = await connect(echoing.port)
    for number in range(2):
        writer.write(asking(number, "/echo"))
        assert (await read_reply(reader)).body == b"%d" % number
    writer.write(b"".join(asking(number, "/echo") for number in range(2, 9)))  # all at once
    data = b""
    async with asyncio.timeout(5):
        while data.count(b"HTTP/1.1 200") < 7 or not data.endswith(b"8"):
            data += await reader.read(2**16)
    assert [part.rpartition(b"\n")[2] for part in data.split(b"HTTP/1.1 200 OK")[1:]] == [
        b"%d" % n for n in range(2, 9)
    ]


@pytest.mark.parametrize("size", [1, 3, 50])
async def test_a_request_may_come_in_any_pieces(echoing, connect, size):
    reader, writer = await connect(echoing.port)
    chunked = (
        b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1;x=y\r\n!\r\n0\r\nX-Trailer: 1\r\n\r\n"
    )
    for start in range(0, len(chunked), size):
        writer.write(chunked[start : start + size])
        await asyncio.sleep(0)
    assert (await read_reply(reader)).body == b"hi!"


async def test_an_offer_of_another_protocol_is_declined_and_the_request_served(echoing, connect):
    offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    reader, writer = await connect(echoing.port)
    for number in range(2):
        writer.write(asking(number, "/echo", offer))
        assert (await read_reply(reader)).body == b"%d" % number
    assert not {"upgrade", "http2-settings", "connection"} & {name for name, _ in echoing.asked[0].headers}


@pytest.mark.parametrize("sent", [b"GET /x", b"GET /x HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n"])
async def test_a_head_that_never_ends_is_given_up_in_openais_shape(echoing, connect, monkeypatch, sent):
    monkeypatch.setattr(client, "HEAD_S", 0.1)
    reader, writer = await connect(echoing.port)
    writer.write(sent)

    async def drip():
        while True:
            await asyncio.sleep(0.02)
            writer.write(b"x")

    dripping = asyncio.create_task(drip())
    reply = await read_reply(reader)
    dripping.cancel()
    assert (reply.status, reply.json["error"]["code"]) == (408, 408)
    assert reply.header("connection") == ["close"]
    assert not echoing.asked


async def test_connections_without_requests_end(echoing, connect, monkeypatch):
    monkeypatch.setattr(client, "HEAD_S", 0.05)
    monkeypatch.setattr(client, "KEEP_ALIVE_S", 0.05)
    silent, _ = await connect(echoing.port)
    reader, writer = await connect(echoing.port)
    writer.write(asking(1, "/echo"))
    await read_reply(reader)
    async with asyncio.timeout(2):
        assert (await reader.read(), await silent.read()) == (b"", b"")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),  # TLS to a port that speaks none
        (b"GET /x HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n folded\r\n\r\n", 400),
        (b"GET /x HTTP/1.1\r\nX-A : 1\r\n\r\n", 400),
        (b"POST /x HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi", 400),
        (b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST /x HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (b"GET /x HTTP/0.9\r\n\r\n", 505),
    ],
)
async def test_what_makes_no_sense_is_refused_in_openais_shape(echoing, connect, sent, status):
    reader, writer = await connect(echoing.port)
    writer.write(sent)
    reply = await read_reply(reader)
    assert (reply.status, reply.json["error"]["code"]) == (status, status)
    assert not echoing.asked


@pytest.mark.parametrize(
    ("sent", "status"),
    [(b"POST /x HTTP/1.1\r\nContent-Length: 9000000\r\n\r\n", 413), (b"GET /x HTTP/1.1\r\nX-Long: ", 431)],
)
async def test_who_is_refused_while_it_sends_can_read_why_at_the_end(start, sent, status):
    async def script(asked):
        await asked.answer(b"")

    def send_all_and_read(port):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
            sock.sendall(sent + b"x" * 9_000_000)
            return sock.recv(2**16)

    proxied = await start(script, max_body_bytes=1000)
    said = await asyncio.to_thread(send_all_and_read, proxied.port)
    assert said.startswith(b"HTTP/1.1 %d " % status)
    assert not proxied.asked


async def test_a_connection_that_was_held_up_when_its_answer_ended_serves_the_next():
    async def script(asked):
        await asked.say(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 0.02)
        await asked.say(b"whole")

    def take(piece):
        pieces.append(piece)
        call.pause()

    asked, pieces = [], []
    async with scripted(script, asked) as port, asyncio.timeout(5):
        upstream = Upstream(Address.parse(f"http://127.0.0.1:{port}"))
        for _ in range(2):
            call = Call()
            answer = await upstream.ask(b"GET", b"/x", [(b"host", b"x")], b"", call)
            await answer.pour(take)
        upstream.close()
    assert pieces == [b"whole"] * 2
    assert len({id(each.writer) for each in asked}) == 1


async def test_a_client_that_does_not_read_holds_up_the_server_and_not_the_proxys_memory(start, connect):
    sent, pieces, piece = 0, 640, b"x" * 2**16

    async def script(asked):
        nonlocal sent
        await asked.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (pieces * len(piece)))
        for _ in range(pieces):
            await asked.say(piece)
            sent += len(piece)

    proxied = await start(script)
    reader, writer = await connect(proxied.port)
    writer.write(b"GET /file HTTP/1.1\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    held = -1
    async with asyncio.timeout(10):
        while held != sent:
            held = sent
            await asyncio.sleep(0.2)
    assert 0 < sent < pieces * len(piece) * 3 / 4  # what sockets hold, and little more
    assert await reader.readexactly(pieces * len(piece)) == piece * pieces


async def test_streams_that_run_may_end_when_the_proxy_does_and_others_are_aborted(start, connect):
    go = asyncio.Event()

    async def script(asked):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
        await asked.say(head + chunk("a", usage=usage(5, 1)))
        if asked.json["model"] == "quick":
            await go.wait()
            await asked.say(chunk("b", "stop", usage=usage(5, 2)) + last(5, 2) + DONE)
            asked.writer.close()
            raise ConnectionError
        await asked.reader.read()

    proxied = await start(script)
    readers = []
    for name in ("quick", "slow"):
        reader, writer = await connect(proxied.port)
        writer.write(asking(CHAT | {"stream": True, "model": name}))
        await reader.readuntil(chunk("a"))
        readers.append(reader)
    proxied.server.stop()
    go.set()
    async with asyncio.timeout(5):
        quick = await readers[0].read()
        await readers[1].read()
    assert quick.endswith(b"0\r\n\r\n") and DONE in quick
    told = {each["model"]: (each["finish_reason"], each["output_tokens"]) for each in proxied.requests}
    assert told == {"m-1": ("abort", 1)} or sorted(each["finish_reason"] for each in proxied.requests) == [
        "abort",
        "stop",
    ]
    with pytest.raises((ConnectionError, CutError)):
        await proxied.ask(body=CHAT)
