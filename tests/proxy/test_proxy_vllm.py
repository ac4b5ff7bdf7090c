"""Opt-in: before a real vLLM that serves nobody else, each tenant's tokens are those that the server counted.

FAREBOX_VLLM_URL=http://127.0.0.1:8000 pytest -n0 -s tests/proxy/test_proxy_vllm.py
"""

import asyncio
import os
import re
from collections import Counter

import httpx
import pytest
from proxy_wire import proxying

from farebox.engine.server.access import Access
from farebox.events import ApiKey, hash_key

URL = os.environ.get("FAREBOX_VLLM_URL")
TENANTS = ("acme", "globex")
COUNTERS = {
    "prompt": r"prompt_tokens_total\{",
    "cached": r"prompt_tokens_by_source_total\{.*local_cache_hit",
    "output": r"generation_tokens_total\{",
}
pytestmark = pytest.mark.skipif(not URL, reason="needs FAREBOX_VLLM_URL: a vLLM that runs and serves nobody else")


async def counters(client):
    """Tokens as the server counts them."""
    page = (await client.get("/metrics")).text
    found = {
        name: re.findall(rf"^vllm:{counter}.*\}} (\S+)$", page, re.MULTILINE) for name, counter in COUNTERS.items()
    }
    return Counter({name: sum(int(float(value)) for value in values) for name, values in found.items()})


def authorized(tenant):
    return {"Authorization": f"Bearer key-of-{tenant}-0123456789"}


async def ask(client, tenant, model, number):
    """Whole answers and streams, with usage and without, chats and completions; returns how many choices."""
    streams, shows = number % 3 > 0, number % 3 == 2
    choices = 1 + (tenant == "acme" and number % 4 == 3)
    body = {"model": model, "max_tokens": 5 + number, "n": choices, "stream": streams, "ignore_eos": True}
    if shows:
        body["stream_options"] = {"include_usage": True}
    prompt = "Who pays for the empty seats of a bus, " * (1 + 12 * (number % 3))
    path = ("/v1/chat/completions", "/v1/completions")[number % 2]
    body |= {"messages": [{"role": "user", "content": prompt}]} if "chat" in path else {"prompt": prompt}
    headers = authorized(tenant) | {"X-Request-Id": f"{tenant}-{choices}"}
    answer = await client.post(path, json=body, headers=headers)
    assert answer.status_code == 200
    assert answer.text.count('"usage":{') == (shows or not streams)
    return choices


async def hang_up(client, tenant, model):
    """Leave a stream in its middle; how many events had come."""
    body = {"model": model, "stream": True, "max_tokens": 900, "prompt": "Who pays? " * 9, "ignore_eos": True}
    async with client.stream("POST", "/v1/completions", json=body, headers=authorized(tenant)) as answer:
        came = 0
        async for line in answer.aiter_lines():
            assert '"usage"' not in line
            came += line.startswith("data: ")
            if came == 20:
                return came
    return 0


async def test_each_tenants_tokens_are_those_that_vllm_counted():
    access = Access()
    access.use([ApiKey(hash_key(f"key-of-{tenant}-0123456789"), tenant, "", 0, None) for tenant in TENANTS])
    async with proxying(int(URL.rpartition(":")[2]), access, silent_s=300) as proxied:
        base = f"http://127.0.0.1:{proxied.port}"
        async with httpx.AsyncClient(base_url=base, timeout=300) as client:
            models = (await client.get("/v1/models", headers=authorized(TENANTS[0]))).json()
            model = models["data"][0]["id"]
            for tenant, asks in zip(TENANTS, (12, 17), strict=True):
                before, begun = await counters(client), len(proxied.requests)
                choices = await asyncio.gather(*(ask(client, tenant, model, number) for number in range(asks)))
                await proxied.until(lambda until=begun + asks: len(proxied.requests) == until)
                counted = await counters(client) - before
                told = Counter()
                for request in proxied.requests[begun:]:
                    assert (request["tenant_id"], request["finish_reason"]) == (tenant, "length")
                    told.update({name: request[f"{name}_tokens"] or 0 for name in ("prompt", "cached", "output")})
                    repeats = int(request["request_id"].split("-")[1]) - 1  # vLLM counts a prompt for each choice
                    told["prompt again"] += repeats * request["prompt_tokens"]
                print(f"{tenant}: {asks} requests, {sum(choices)} choices; proxy {dict(told)}, vLLM {dict(counted)}")
                assert told["output"] == counted["output"]
                assert told["prompt"] + told["prompt again"] == counted["prompt"]
                if sum(choices) == asks:  # of several choices, vLLM tells the cached tokens of one
                    assert told["cached"] in (0, counted["cached"])  # 0: without --enable-prompt-tokens-details
            before = await counters(client)
            came = await hang_up(client, "acme", model)
            await proxied.until(lambda: proxied.requests[-1]["finish_reason"] == "abort")
            await asyncio.sleep(1)
            counted = await counters(client) - before
    aborted = proxied.requests[-1]
    print(f"hung up after {came} events: {aborted['prompt_tokens']} + {aborted['output_tokens']}, vLLM {dict(counted)}")
    assert aborted["prompt_tokens"] == counted["prompt"]
    assert came <= aborted["output_tokens"] <= counted["output"]
