"""Who asks: by API key, or by a header where the operator trusts one; clients cannot choose."""

import asyncio
import json
import logging
import os
from hashlib import sha256
from types import SimpleNamespace

import pytest
from farebox_vllm import keys as keys_module
from farebox_vllm.keys import Keys
from farebox_vllm.middleware import CALLER, Access, Caller, TenantMiddleware
from farebox_vllm.settings import read_settings
from farebox_vllm.tenant import give_tenant, take_tenant

KEY = "sk-0123456789abcdef"


def write(path, keys: dict[str, str]):
    path.write_text(json.dumps({sha256(key.encode()).hexdigest(): tenant for key, tenant in keys.items()}))
    return path


def access(monkeypatch, **environment: str) -> Access:
    for name in list(os.environ):
        if name.startswith("FAREBOX_"):
            monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(f"FAREBOX_{name}", value)
    return Access(read_settings())


def headers(**values: str):
    return [(name.replace("_", "-").encode(), value.encode()) for name, value in values.items()]


def test_a_key_names_its_tenant(tmp_path, monkeypatch):
    who = access(monkeypatch, KEYS=str(write(tmp_path / "keys.json", {KEY: "acme"})))
    assert who.caller(headers(authorization=f"Bearer {KEY}")) == Caller("acme", "standard")
    assert who.caller(headers(authorization=f"bearer  {KEY} ")) == Caller("acme", "standard")
    assert who.caller(headers(x_api_key=KEY)) == Caller("acme", "standard")
    assert who.caller(headers(authorization="Bearer sk-somebody-else-s")).tenant_id == "unknown"
    assert who.caller(headers()).tenant_id == "anonymous"


def test_a_client_cannot_name_its_tenant_or_tier_unless_the_operator_says_so(monkeypatch):
    sent = headers(x_tenant="acme", x_tenant_id="acme", x_tier="fast", x_farebox_tier="fast")
    assert access(monkeypatch).caller(sent) == Caller("anonymous", "standard")
    trusting = access(monkeypatch, TRUST_TENANT_HEADER="X-Tenant-Id", TRUST_TIER_HEADER="X-Tier")
    assert trusting.caller(sent) == Caller("acme", "fast")
    assert trusting.caller(headers(x_tenant_id="acme", x_tier="first class")) == Caller("acme", "standard")


@pytest.mark.parametrize("name", ["", " ", "a\x07b", "x" * 129])
def test_a_name_that_is_none_is_not_taken(monkeypatch, name):
    assert access(monkeypatch, TRUST_TENANT_HEADER="X-T").caller(headers(x_t=name)).tenant_id == "anonymous"


def test_keys_are_read_again_when_the_file_changes(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(keys_module, "LOOK_S", 0.0)
    keys = Keys(path := tmp_path / "keys.json")
    with caplog.at_level(logging.WARNING, "vllm.farebox"):
        assert [keys.tenant(KEY), keys.tenant(KEY)] == ["unknown"] * 2
        write(path, {KEY: "acme"})
        assert keys.tenant(KEY) == "acme"
        path.write_text("[] or so")
        assert [keys.tenant(KEY), keys.tenant(KEY)] == ["acme"] * 2
        write(path, {KEY: "globex-corporation"})
        assert keys.tenant(KEY) == "globex-corporation"
    assert len(caplog.records) == 2, "a bad file is complained about once"
    assert KEY not in caplog.text


def test_the_caller_stays_with_all_that_is_done_for_a_request(monkeypatch):
    """Requests that are served at once, streams and tasks of their own included, do not mix."""
    seen: dict[str, list[str]] = {}

    async def app(scope, receive, send):
        name = dict(scope["headers"])[b"x-t"].decode()

        async def stream():
            for _ in range(3):
                await asyncio.sleep(0)
                caller = CALLER.get()
                yield caller.tenant_id if caller else "nobody"

        async def read():
            seen[name] = [part async for part in stream()]

        await asyncio.gather(asyncio.create_task(read()), asyncio.sleep(0.001))

    middleware = TenantMiddleware(app, access(monkeypatch, TRUST_TENANT_HEADER="x-t"))

    async def serve():
        scopes = [{"type": "http", "headers": headers(x_t=f"t{number}")} for number in range(20)]
        await asyncio.gather(*(middleware(scope, None, None) for scope in scopes))

    asyncio.run(serve())
    assert seen == {f"t{number}": [f"t{number}"] * 3 for number in range(20)}
    assert CALLER.get() is None


def test_a_request_is_served_when_its_caller_cannot_be_told():
    served = []

    async def app(scope, receive, send):
        served.append(CALLER.get())

    broken = SimpleNamespace(caller=lambda _: 1 / 0)
    asyncio.run(TenantMiddleware(app, broken)({"type": "http", "headers": []}, None, None))  # pyright: ignore
    asyncio.run(TenantMiddleware(app, broken)({"type": "lifespan"}, None, None))  # pyright: ignore
    assert served == [None, None]


@pytest.mark.parametrize("own", [None, {"traceparent": "00-1"}])
def test_the_tenant_travels_in_trace_headers_and_leaves_no_trace(own):
    request = SimpleNamespace(trace_headers=own)
    give_tenant(request, "acme", "batch")
    assert take_tenant(request) == ("acme", "batch") and request.trace_headers == own
    assert take_tenant(request) == ("anonymous", "standard") and request.trace_headers == own


def test_what_came_along_under_these_names_is_replaced():
    request = SimpleNamespace(trace_headers={"x-tenant": "forged", "x-tier": "fast"})
    give_tenant(request, "acme", "standard")
    assert take_tenant(request) == ("acme", "standard")
