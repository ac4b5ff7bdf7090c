"""Load on a vLLM server: several tenants, streams and plain calls, chats and completions, and clients that hang up."""

from __future__ import annotations

import http.client
import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

TENANTS = ("acme", "globex", "initech")
WORDS = ["def", "class", "import", "return", "self", "value", "index", "request", "token", "batch", "cache", "cost"]
AT_ONCE = 12
SHARED = " ".join(WORDS * 12)


class Call(NamedTuple):
    """What a client asked for, and what it was told."""

    tenant: str
    hangs_up: bool
    prompt_tokens: int
    output_tokens: int
    answers: int


def run(
    port: int, requests: int, keys: dict[str, str], prompts: tuple[int, ...], outputs: tuple[int, ...]
) -> list[Call]:
    """Serve some requests at once; tenants with a key send it, the others are named by the header."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda number: _call(port, number, keys, prompts, outputs), range(requests)))


def _call(port: int, number: int, keys: dict[str, str], prompts: tuple[int, ...], outputs: tuple[int, ...]) -> Call:
    dice = random.Random(number)
    tenant = TENANTS[number % len(TENANTS)]
    hangs_up, is_stream, is_chat = number % 7 == 3, number % 2 == 0 or number % 7 == 3, number % 3 != 0
    answers = 2 if number % 10 == 5 and not hangs_up else 1
    prompt = " ".join(dice.choices(WORDS, k=dice.choice(prompts)))
    if number % 4 == 1:
        prompt = f"{SHARED} {prompt}"
    body: dict[str, Any] = {"model": "tiny", "max_tokens": dice.choice(outputs), "n": answers}
    body |= {"stream": is_stream, "ignore_eos": True, "temperature": 0.8}
    body |= {"messages": [{"role": "user", "content": prompt}]} if is_chat else {"prompt": prompt}
    if hangs_up:
        body["max_tokens"] = 256
    if is_stream:
        body["stream_options"] = {"include_usage": True}
    who = {"Authorization": f"Bearer {keys[tenant]}"} if tenant in keys else {"X-Tenant-Id": tenant}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    path = "/v1/chat/completions" if is_chat else "/v1/completions"
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"} | who)
    response = connection.getresponse()
    if response.status != 200:
        raise RuntimeError(f"{response.status}: {response.read()!r}")
    told: dict[str, Any] = {}
    for heard, chunk in enumerate(_chunks(response, is_stream)):
        told = chunk.get("usage") or told
        if hangs_up and heard == 5:
            break
    connection.close()
    return Call(tenant, hangs_up, told.get("prompt_tokens", 0), told.get("completion_tokens", 0), answers)


def _chunks(response: http.client.HTTPResponse, is_stream: bool) -> Iterator[dict[str, Any]]:
    if not is_stream:
        yield json.loads(response.read())
        return
    for line in response:
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])
