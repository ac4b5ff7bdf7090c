"""Opt-in, `make test-llamacpp`: before a real llama.cpp server, tenants' tokens add up to the server's own counters."""

import asyncio
import os
import re
import subprocess
import time
from collections import Counter
from pathlib import Path

import httpx
import pytest
from proxy_wire import proxying

from farebox.collector.listening import listen
from farebox.engine.server.access import Access
from farebox.events import ApiKey, hash_key

PYTHON = os.environ.get("FAREBOX_LLAMACPP")
SERVER = Path(__file__).with_name("llamacpp_server.py")
TENANTS = ("acme", "globex", "initech")
pytestmark = pytest.mark.skipif(not PYTHON, reason="needs FAREBOX_LLAMACPP: a Python that has xllamacpp")


@pytest.fixture
def port():
    """The port of a llama.cpp server that runs while the test does."""
    with listen("127.0.0.1", 0) as sock:
        found = sock.getsockname()[1]
    process = subprocess.Popen(
        [PYTHON, str(SERVER), str(found), "4"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until = time.monotonic() + 120
    while True:
        try:
            if httpx.get(f"http://127.0.0.1:{found}/health").status_code == 200:
                break
        except httpx.TransportError:
            pass
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.5)
    yield found
    process.kill()
    process.wait()


async def counters(client):
    """Prompt tokens computed, and tokens generated, as the server counts them."""
    page = (await client.get("/metrics")).text
    names = ("prompt_tokens_total", "tokens_predicted_total")
    return [int(float(re.search(rf"^llamacpp:{name} (\S+)", page, re.MULTILINE)[1])) for name in names]


async def ask(client, number):
    body = {"max_tokens": 3 + number % 3, "n_predict": 3 + number % 3, "stream": number % 2 == 0}
    prompt = "Who pays for the empty seats of a bus, " * (1 + number % 3)
    path = ("/v1/chat/completions", "/v1/completions", "/completion")[number // 2 % 3]
    body |= {"messages": [{"role": "user", "content": prompt}]} if "chat" in path else {"prompt": prompt}
    key = f"key-of-{TENANTS[number % 3]}-0123456789"
    answer = await client.post(path, json=body, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200
    if number % 2 == 0 and path.startswith("/v1"):
        assert '"usage"' not in answer.text


async def hang_up(client):
    """Leave a stream in its middle; how many events had come."""
    body = {"stream": True, "max_tokens": 60, "messages": [{"role": "user", "content": "Who pays for the seats? " * 4}]}
    headers = {"Authorization": "Bearer key-of-acme-0123456789"}
    async with client.stream("POST", "/v1/chat/completions", json=body, headers=headers) as answer:
        came = 0
        async for line in answer.aiter_lines():
            assert "timings" not in line
            came += line.startswith("data: ")
            if came == 4:
                return came
    return 0


async def test_tenants_tokens_add_up_to_the_counters_of_llamacpp(port):
    access = Access()
    access.use([ApiKey(hash_key(f"key-of-{tenant}-0123456789"), tenant, "", 0, None) for tenant in TENANTS])
    async with proxying(port, access, silent_s=300) as proxied:
        base = f"http://127.0.0.1:{proxied.port}"
        async with httpx.AsyncClient(base_url=base, timeout=300) as client:
            before = await counters(client)
            await asyncio.gather(*(ask(client, number) for number in range(12)))
            after = await counters(client)
            hung_up = await hang_up(client)
            await proxied.until(lambda: len(proxied.requests) == 13)
    *requests, aborted = proxied.requests
    print(f"hung up after {hung_up} events: {aborted}")
    assert (aborted["finish_reason"], aborted["prompt_tokens"] > 20) == ("abort", True)
    assert aborted["output_tokens"] >= hung_up - 1  # the first event has the role only
    told: Counter[str] = Counter()
    by_tenant: Counter[str] = Counter()
    for request in requests:
        told.update({name: request[f"{name}_tokens"] for name in ("prompt", "cached", "output")})
        by_tenant[request["tenant_id"]] += request["output_tokens"]
    computed, generated = (b - a for a, b in zip(before, after, strict=True))
    print(f"llama.cpp: {computed} computed, {generated} generated; proxy: {dict(told)}, by tenant {dict(by_tenant)}")
    assert set(by_tenant) == set(TENANTS)
    assert (told["prompt"] - told["cached"], told["output"]) == (computed, generated)
