"""The proxy when something goes wrong: with the server, with the client, or with what it asks."""

import asyncio
import json
from contextlib import suppress

import pytest
from proxy_answers import CHAT, chunk, usage
from proxy_wire import CutError

from farebox.collector.proxy import visit


@pytest.mark.parametrize("status", ["400 Bad Request", "429 Too Many Requests", "500 Oops", "502 Bad", "503 Busy"])
async def test_refusals_come_back_as_they_were(start, status):
    body = json.dumps({"error": {"message": "no", "type": "x", "param": None, "code": 1}}).encode()

    async def script(asking):
        await asking.answer(body, status=status, more="Retry-After: 7\r\n")

    proxied = await start(script)
    reply = await proxied.ask(body=CHAT | {"stream": True})
    assert (reply.status, reply.body, reply.header("retry-after")) == (int(status[:3]), body, ["7"])
    (request,) = proxied.requests
    assert request["finish_reason"] == ("error" if status[:3] in ("500", "502") else "rejected")
    assert (request["prompt_tokens"], request["output_tokens"]) == (None, None)
    assert proxied.tokens() == (0, 0, 0)


async def test_nobody_there_is_502_and_silence_504_in_openais_shape(start):
    async def script(asking):
        await asyncio.sleep(5)

    proxied = await start(script, silent_s=0.05)
    reply = await proxied.ask(body=CHAT)
    assert (reply.status, reply.json["error"]["code"]) == (504, 504)
    assert proxied.requests[0]["finish_reason"] == "error"

    async def hang_up(asking):
        asking.writer.transport.abort()
        raise ConnectionError

    dead = await start(hang_up)
    reply = await dead.ask(body=CHAT)
    assert (reply.status, reply.json["error"]["type"]) == (502, "InternalServerError")


async def test_an_answer_that_makes_no_sense_is_502(start):
    async def script(asking):
        await asking.say(b"SSH-2.0-OpenSSH_9.6\r\n")
        asking.writer.close()

    assert (await (await start(script)).ask(body=CHAT)).status == 502


async def test_a_stream_that_is_cut_is_cut_for_the_client_too_and_what_came_counts(start):
    half = chunk("half")[:20]

    async def script(asking):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        whole = chunk("a", usage=usage(5, 1)) + chunk("b", usage=usage(5, 2)) + half
        await asking.say(head + b"%x\r\n%b\r\n" % (len(whole), whole))
        asking.writer.close()
        raise ConnectionError

    proxied = await start(script)
    with pytest.raises(CutError) as cut:
        await proxied.ask(body=CHAT | {"stream": True})
    assert cut.value.reply.body == chunk("a") + chunk("b") + half
    (request,) = proxied.requests
    assert (request["finish_reason"], request["prompt_tokens"], request["output_tokens"]) == ("error", 5, 2)


async def test_a_client_that_hangs_up_is_gone_at_once_and_pays_for_what_was_made(start):
    left = asyncio.Event()

    async def script(asking):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        await asking.say(head)
        for made in range(1, 4):
            event = chunk("x", usage=usage(45, made))
            await asking.say(b"%x\r\n%b\r\n" % (len(event), event), 0.005)
        await asking.reader.read()
        left.set()

    proxied = await start(script)
    reader, writer = await asyncio.open_connection("127.0.0.1", proxied.port)
    body = json.dumps(CHAT | {"stream": True}).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    for _ in range(3):
        await reader.readuntil(b"\n\n")
    writer.close()
    async with asyncio.timeout(2):
        await left.wait()
    await proxied.until(lambda: bool(proxied.requests))
    (request,) = proxied.requests
    assert (request["finish_reason"], request["prompt_tokens"], request["output_tokens"]) == ("abort", 45, 3)
    assert proxied.tokens() == (45, 0, 3)


async def test_paths_of_other_servers_and_what_servers_read_in_two_ways_are_refused(start):
    async def script(asking):
        await asking.answer(b"inside")

    proxied = await start(script)
    for line in (
        b"GET http://elsewhere/x HTTP/1.1",
        b"CONNECT elsewhere:443 HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"POST /v1/completions#x HTTP/1.1",  # vLLM's server and llama.cpp's cut it off and would serve it, unmetered
        b"POST /v1/models HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked",
    ):
        with suppress(CutError):  # after CONNECT nothing more can be said
            assert (await proxied.raw(line + b"\r\nHost: elsewhere\r\n\r\n")).status == 400
    assert not proxied.asked


async def test_limits_on_bodies_and_heads(start):
    async def script(asking):
        await asking.answer(str(len(asking.body)).encode(), "text/plain")

    proxied = await start(script, max_body_bytes=1_000_000)
    assert (await proxied.ask("/big", b"x" * 1_000_000)).body == b"1000000"
    reply = await proxied.ask("/big", b"x" * 1_000_001)
    assert (reply.status, reply.json["error"]["type"]) == (413, "RequestTooLargeError")
    chunked = b"POST /big HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nf4241\r\n" + b"x" * 1_000_001
    assert (await proxied.raw(chunked + b"\r\n0\r\n\r\n")).status == 413
    for size in (70_000, 2_000_000):
        reply = await proxied.ask("/big", X_Long="x" * size)
        assert (reply.status, reply.json["error"]["code"]) == (431, 431)
    assert len(proxied.asked) == 1


async def test_a_body_that_does_not_come_is_given_up(start, monkeypatch):
    async def script(asking):
        await asking.answer(b"")

    monkeypatch.setattr(visit, "BODY_SILENT_S", 0.05)
    proxied = await start(script)
    reply = await proxied.raw(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
    assert reply.status == 408
    assert not proxied.asked


async def test_a_body_that_is_no_json_is_the_servers_to_refuse(start):
    async def script(asking):
        await asking.answer(b'{"error": {}}', status="400 Bad Request")

    proxied = await start(script)
    for body in (b"{", b"[1]", b'{"a":' * 2000):
        assert (await proxied.ask(body=body)).status == 400
        assert proxied.asked[-1].body == body
    assert {each["finish_reason"] for each in proxied.requests} == {"rejected"}
