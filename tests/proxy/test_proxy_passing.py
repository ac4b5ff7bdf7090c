"""The proxy as clients see it: whatever the server says comes back as it was."""

import asyncio
import gzip
import json
from contextlib import suppress

import pytest
from proxy_answers import CHAT, DONE, chunk, last, usage
from proxy_wire import CutError, read_reply

from farebox.collector.proxy.headers import end_to_end
from farebox.engine.server.access import Access
from farebox.events import ApiKey, hash_key


async def test_any_method_and_path_goes_through_with_query_headers_and_body(start):
    async def script(asking):
        more = (
            "X-A: 1\r\nX-A: 2\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: x-hop\r\nX-Hop: no\r\nServer: s\r\n"
        )
        await asking.answer("déjà vu".encode(), "text/plain; charset=utf-8", "207 Multi", more)

    proxied = await start(script)
    for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS", "POST"):
        reply = await proxied.ask("/any/p%20ath%2F?q=%C3%A9&q=2", b"body", method, X_B="ü", Connection="x-c", X_C="no")
        assert (reply.status, reply.body.decode()) == (207, "déjà vu")
        assert reply.header("x-a") == ["1", "2"]
        assert reply.header("set-cookie") == ["a=1", "b=2"]
        assert reply.header("server") == ["s"]
        assert not reply.header("x-hop")
        asked = proxied.asked[-1]
        assert (asked.method, asked.target, asked.body) == (method, "/any/p%20ath%2F?q=%C3%A9&q=2", b"body")
        assert asked.header("x-b") == ["ü"]
        assert not asked.header("x-c") and asked.header("host")[0].startswith("127.0.0.1:")
    assert proxied.told == []


async def test_health_and_metrics_need_no_key_and_everything_else_does(start):
    async def script(asking):
        await asking.answer(b"vllm:num_requests_running 1\n", "text/plain; version=0.0.4")

    access = Access()
    access.use([ApiKey(hash_key("k" * 20), "chat", "kkkk", 0, None)])
    proxied = await start(script, access=access)
    for path in ("/health", "/metrics", "/version"):
        assert (await proxied.ask(path, method="GET")).body == b"vllm:num_requests_running 1\n"
    for path, method in (("/v1/models", "GET"), ("/v1/chat/completions", "POST"), ("/health", "POST")):
        reply = await proxied.ask(path, CHAT, method)
        assert (reply.status, reply.json["error"]["type"]) == (401, "AuthenticationError")
    assert (await proxied.ask("/v1/models", method="GET", Authorization=f"Bearer {'k' * 20}")).status == 200
    assert (await proxied.ask("/v1/messages", CHAT, x_api_key="k" * 20)).status == 200


async def test_a_client_cannot_choose_its_tenant(start):
    async def script(asking):
        await asking.answer(json.dumps({"usage": usage(3, 1)}).encode())

    access = Access()
    access.use([ApiKey(hash_key("k" * 20), "señor", "kkkk", 0, None)])
    proxied = await start(script, access=access)
    body = json.dumps(CHAT | {"user": "other"}).encode()
    for name in ("X-Tenant-Id", "x_tenant_id", "X_Tenant-ID", "X.Tenant.Id"):  # servers behind WSGI read them as one
        head = f"POST /v1/completions HTTP/1.1\r\nAuthorization: Bearer {'k' * 20}\r\n{name}: other\r\n"
        await proxied.raw(f"{head}Content_Length: 3\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        asked = proxied.asked[-1]
        assert asked.header("x-tenant-id") == ["señor"]
        assert not [value for _, value in asked.headers if value in ("other", "3")]
    assert {each["tenant_id"] for each in proxied.requests} == {"señor"}


async def test_the_servers_own_key_takes_the_clients_place(start):
    async def script(asking):
        await asking.answer(b"{}")

    proxied = await start(script, upstream_key="upstream-secret")
    await proxied.ask(body=CHAT, Authorization="Bearer client-key", x_api_key="client-key")
    assert proxied.asked[0].header("authorization") == ["Bearer upstream-secret"]
    assert not proxied.asked[0].header("x-api-key")
    assert "upstream-secret" not in json.dumps(proxied.told)


async def test_request_ids_are_kept_or_made_and_retries_are_requests_of_their_own(start):
    async def script(asking):
        await asking.answer(json.dumps({"usage": usage(3, 1)}).encode())

    proxied = await start(script)
    for _ in range(2):
        reply = await proxied.ask(body=CHAT, X_Request_Id="mine")
        assert reply.header("x-request-id") == ["mine"]
    made = (await proxied.ask(body=CHAT)).header("x-request-id")
    assert [each.header("x-request-id") for each in proxied.asked] == [["mine"], ["mine"], made]
    ids = [each["request_id"] for each in proxied.requests]
    assert len(set(ids)) == 3 and all(each.startswith("mine-") for each in ids[:2])


async def test_a_stream_comes_byte_for_byte_less_what_the_client_did_not_ask_for(start):
    pieces = [chunk("é", usage=None), chunk("b", "stop"), last(7, 2), DONE]

    async def script(asking):
        await asking.stream(*pieces)

    proxied = await start(script)
    hidden = await proxied.ask(body=CHAT | {"stream": True})
    assert hidden.body == chunk("é") + chunk("b", "stop") + DONE
    assert proxied.asked[0].json["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    for options in ({"include_usage": True}, {"include_usage": True, "continuous_usage_stats": True}):
        shown = await proxied.ask(body=CHAT | {"stream": True, "stream_options": options})
        assert shown.body == b"".join(pieces)
    assert [(each["prompt_tokens"], each["output_tokens"]) for each in proxied.requests] == [(7, 2)] * 3
    assert {each["finish_reason"] for each in proxied.requests} == {"stop"}


async def test_running_totals_are_cut_out_of_the_bytes_for_who_did_not_ask(start):
    odd = b'data: {"choices":[{"index":0,"delta":{"content":",\\"usage\\":{"},"finish_reason":null}],"x": 1.50 %b}\n\n'
    running = b',"usage":{"prompt_tokens":5,"completion_tokens":1}'
    ended, end = chunk("b", "length", usage=usage(5, 2)), chunk("b", "length")

    async def script(asking):
        await asking.stream(odd % running, ended, last(5, 2), DONE)

    proxied = await start(script)
    assert (await proxied.ask(body=CHAT | {"stream": True})).body == odd % b"" + end + DONE
    asks_final = CHAT | {"stream": True, "stream_options": {"include_usage": True}}
    assert (await proxied.ask(body=asks_final)).body == odd % b"" + end + last(5, 2) + DONE
    assert proxied.tokens() == (10, 0, 4)


async def test_llamacpp_is_asked_for_its_timings_so_that_a_cut_stream_tells_its_prompt(start):
    timed = b',"timings":{"cache_n":21,"prompt_n":5,"prompt_ms":889.623,"predicted_n":%d,"predicted_ms":0.001}'
    plain = [chunk("a"), chunk("b"), chunk("", "stop")]

    async def script(asking):
        head = b"HTTP/1.1 200 OK\r\nServer: llama.cpp\r\nContent-Type: text/event-stream\r\n\r\n"
        wants = asking.body.endswith(b'"timings_per_token":true}') or asking.json.get("timings_per_token")
        made = [event[:-3] + timed % (n + 1) + event[-3:] for n, event in enumerate(plain[:2])] if wants else plain[:2]
        await asking.say(head + b"".join(made))
        if asking.json.get("max_tokens") != 9:
            await asking.say(plain[2] + last(26, 2))
        asking.writer.close()
        raise ConnectionError

    proxied = await start(script)
    whole = b"".join(plain)
    assert (await proxied.ask(body=CHAT | {"stream": True})).body == whole
    assert (await proxied.ask(body=CHAT | {"stream": True})).body == whole
    assert [b"timings" in each.body for each in proxied.asked] == [False, True]
    own = await proxied.ask(body=CHAT | {"stream": True, "timings_per_token": True})
    assert own.body.count(b'"timings"') == 2
    assert (await proxied.ask(body=CHAT | {"stream": True, "max_tokens": 9})).body == b"".join(plain[:2])
    cut = proxied.requests[-1]
    assert (cut["finish_reason"], cut["prompt_tokens"], cut["cached_tokens"], cut["output_tokens"]) == (
        "error",
        26,
        21,
        2,
    )


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
async def test_events_may_be_cut_anywhere(start, size):
    whole = b": hello\n\n" + chunk("ü", usage=None) + b"event: x\r\ndata: {\r\ndata: }\r\n\r\n" + last(7, 2) + DONE
    pieces = [whole[i : i + size] for i in range(0, len(whole), size)]

    async def script(asking):
        await asking.stream(*pieces, pause=0)

    proxied = await start(script)
    reply = await proxied.ask(body=CHAT | {"stream": True})
    assert reply.body == whole.replace(last(7, 2), b"").replace(b',"usage":null', b"")
    assert proxied.tokens() == (7, 0, 2)


async def test_each_event_is_sent_when_it_comes(start):
    go = asyncio.Event()

    async def script(asking):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        await asking.say(head + b"%x\r\n%b\r\n" % (len(chunk()), chunk()))
        await go.wait()
        await asking.say(b"0\r\n\r\n")

    proxied = await start(script)
    reader, writer = await asyncio.open_connection("127.0.0.1", proxied.port)
    body = json.dumps(CHAT | {"stream": True}).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    async with asyncio.timeout(5):
        await reader.readuntil(chunk())
    go.set()
    writer.close()


async def test_compressed_answers_stay_compressed_and_are_read(start):
    body = gzip.compress(json.dumps({"usage": usage(9, 4)}).encode())

    async def script(asking):
        await asking.answer(body, more="Content-Encoding: gzip\r\n")

    proxied = await start(script)
    reply = await proxied.ask(body=CHAT, Accept_Encoding="gzip")
    assert (reply.body, reply.header("content-encoding")) == (body, ["gzip"])
    assert proxied.asked[0].header("accept-encoding") == ["identity"]
    assert proxied.tokens() == (9, 0, 4)
    await proxied.ask("/v1/models", method="GET", Accept_Encoding="br")
    assert proxied.asked[1].header("accept-encoding") == ["br"]


async def test_what_a_server_does_not_understand_it_is_not_asked_again(start):
    async def script(asking):
        options = asking.json.get("stream_options", {})
        unknown = next((name for name in options if name != "include_usage"), None)
        if unknown:
            await asking.answer(f"Unknown parameter: stream_options.{unknown}".encode(), status="400 Bad Request")
        else:
            await asking.stream(chunk("a", "stop"), last(4, 1), DONE)

    proxied = await start(script)
    for _ in range(2):
        assert (await proxied.ask(body=CHAT | {"stream": True})).body == chunk("a", "stop") + DONE
    assert len(proxied.asked) == 3
    own = CHAT | {"stream": True, "stream_options": {"include_usage": True, "continuous_usage_stats": True}}
    assert (await proxied.ask(body=own)).status == 400
    assert proxied.tokens() == (8, 0, 2)


@pytest.mark.parametrize("is_cut", [True, False])
async def test_running_totals_of_several_answers_are_those_of_each(start, is_cut):
    def part(index, made, reason=None):
        choices = [{"index": index, "delta": {"content": "x"}, "finish_reason": reason}]
        return b"data: " + json.dumps({"choices": choices, "usage": usage(10, made)}).encode() + b"\n\n"

    async def script(asking):
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        whole = part(0, 1) + part(1, 2) + part(0, 3) + part(1, 4, "stop") + (b"" if is_cut else last(10, 7) + DONE)
        await asking.say(head + b"%x\r\n%b\r\n" % (len(whole), whole))
        if not is_cut:
            await asking.say(b"0\r\n\r\n")
        asking.writer.close()
        raise ConnectionError

    proxied = await start(script)
    with suppress(CutError):
        await proxied.ask(body=CHAT | {"stream": True, "n": 2})
    (request,) = proxied.requests
    assert (request["prompt_tokens"], request["output_tokens"]) == (10, 7)
    assert proxied.tokens() == (10, 0, 7)


async def test_tokens_that_nobody_counts_are_counted_in_passing_and_the_prompt_stays_unknown(start):
    async def script(asking):
        await asking.stream(chunk(""), chunk("a"), chunk("b"), chunk("", "stop"), DONE)

    proxied = await start(script)
    await proxied.ask(body=CHAT | {"stream": True})
    (request,) = proxied.requests
    assert (request["prompt_tokens"], request["cached_tokens"], request["output_tokens"]) == (None, None, 2)


async def test_an_old_client_an_old_server_and_expect_continue(start):
    async def script(asking):
        if asking.target == "/old":
            await asking.say(b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold")
            asking.writer.close()
            raise ConnectionError
        await asking.answer(asking.body)

    proxied = await start(script)
    assert (await proxied.ask("/old", method="GET")).body == b"old"
    reply = await proxied.raw(b"POST /echo HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi")
    assert (reply.status, reply.body) == (200, b"hi")
    reader, writer = await asyncio.open_connection("127.0.0.1", proxied.port)
    writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    async with asyncio.timeout(5):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
    writer.write(b"hi")
    assert (await read_reply(reader)).body == b"hi"
    writer.write(b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nagain")
    assert (await read_reply(reader)).body == b"again"
    assert not proxied.asked[-2].header("expect")
    writer.close()


@pytest.mark.parametrize(
    "path", ["/v1/completions/", "//v1/chat/completions", "/v1/chat/completions?a=/x", "/generate", "/"]
)
async def test_no_spelling_of_a_path_goes_unmetered(start, path):
    async def script(asking):
        await asking.answer(json.dumps({"usage": usage(2, 1)}).encode())

    proxied = await start(script)
    await proxied.ask(path, CHAT)
    assert proxied.tokens() == (2, 0, 1)


async def test_a_head_request_has_no_body(start):
    async def script(asking):
        await asking.say(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n")

    reply = await (await start(script)).ask("/v1/models", method="HEAD")
    assert (reply.status, reply.body, reply.header("content-length")) == (200, b"", ["10"])


async def test_a_large_answer_goes_through_and_its_usage_is_read(start):
    data = [{"object": "embedding", "embedding": [0.125] * 2000} for _ in range(60)]
    body = json.dumps({"model": "e", "data": data, "usage": {"prompt_tokens": 60, "total_tokens": 60}}).encode()

    async def script(asking):
        await asking.answer(body)

    proxied = await start(script)
    assert (await proxied.ask("/v1/embeddings", {"model": "e", "input": ["x"] * 60})).body == body
    (request,) = proxied.requests
    assert (request["prompt_tokens"], request["output_tokens"], request["model"]) == (60, None, "e")


async def test_connections_to_the_server_are_used_again(start):
    async def script(asking):
        await asking.answer(b"ok")

    proxied = await start(script)
    for _ in range(3):
        await proxied.ask("/x", method="GET")
    assert len({id(each.writer) for each in proxied.asked}) == 1


async def test_other_streams_are_metered_as_they_are(start):
    lines = [{"model": "l", "response": "a", "done": False}, {"done": True, "done_reason": "length", "eval_count": 5}]
    ollama = b"".join(json.dumps(line | {"prompt_eval_count": 3}).encode() + b"\n" for line in lines)
    claude = b"".join(
        b"event: %b\ndata: %b\n\n" % (event["type"].encode(), json.dumps(event).encode())
        for event in (
            {"type": "message_start", "message": {"usage": {"input_tokens": 10, "cache_read_input_tokens": 90}}},
            {"type": "content_block_delta", "delta": {"text": "x"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 6}},
            {"type": "message_stop"},
        )
    )

    async def script(asking):
        if asking.target == "/api/generate":
            await asking.stream(ollama, kind="application/x-ndjson")
        else:
            await asking.stream(claude)

    proxied = await start(script)
    assert (await proxied.ask("/api/generate", {"model": "l"})).body == ollama
    assert (await proxied.ask("/v1/messages", {"model": "c", "stream": True, "max_tokens": 9})).body == claude
    told = [(r["prompt_tokens"], r["cached_tokens"], r["output_tokens"], r["finish_reason"]) for r in proxied.requests]
    assert told == [(3, None, 5, "length"), (100, 90, 6, "stop")]


def test_headers_of_one_hop_stay_there():
    headers = [(b"connection", b"close, X-One"), (b"x-one", b"1"), (b"te", b"gzip"), (b"x-two", b"2"), (b"x-two", b"3")]
    assert end_to_end(headers, b"x-three") == [(b"x-two", b"2"), (b"x-two", b"3")]
