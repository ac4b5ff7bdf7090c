"""Who rides on whose account, and in which tier."""

import time

import pytest
from openai import APIStatusError

from farebox.engine.server.access import Access
from farebox.events import ApiKey, hash_key

CHAT, CODE, OLD = "sk-chat-0123456789", "sk-code-0123456789", "sk-gone-0123456789"


def keys() -> list[ApiKey]:
    def row(key: str, tenant_id: str, to_ns: int | None = None) -> ApiKey:
        return ApiKey(hash_key(key), tenant_id, key[-4:], 0, to_ns)

    return [row(CHAT, "chat"), row(CODE, "code"), row(OLD, "old", time.time_ns())]


def with_keys(**settings) -> Access:
    access = Access(**settings)
    access.use(keys())
    return access


async def ask(served, key: str = "none", **headers: str) -> None:
    await served.client(key, **headers).completions.create(model="tiny", prompt="a", max_tokens=1)


async def refusal(served, key: str = "none", **headers: str) -> int:
    with pytest.raises(APIStatusError) as refused:
        await ask(served, key, **headers)
    return refused.value.status_code


async def test_a_key_stands_for_its_tenant(serve):
    served = await serve(with_keys())
    await ask(served, CHAT)
    await ask(served, CODE)
    assert [request.tenant_id for request in served.told.requests] == ["chat", "code"]


async def test_unknown_revoked_and_missing_keys_are_refused(serve):
    served = await serve(with_keys())
    assert [await refusal(served, key) for key in ("sk-nobody-0123456789", OLD, CHAT[:-1])] == [401, 401, 401]
    assert (await served.raw("GET", "/v1/models"))[0] == 401
    assert (await served.raw("GET", "/metrics"))[0] == 200
    assert served.told.requests == []


async def test_a_key_that_is_added_while_the_server_runs_closes_it_to_everybody_else(serve):
    access = Access()
    served = await serve(access)
    await ask(served)
    access.use(keys())
    assert await refusal(served) == 401
    await ask(served, CODE)
    assert [request.tenant_id for request in served.told.requests] == ["anonymous", "code"]


async def test_a_server_that_requires_keys_is_closed_before_there_is_one(serve):
    assert await refusal(await serve(Access(require_key=True)), CHAT) == 401


async def test_a_client_names_its_own_tenant_only_where_the_header_is_trusted(serve):
    served = await serve(with_keys())
    await ask(served, CHAT, **{"X-Tenant-Id": "code"})
    gateway = await serve(with_keys(tenant_header="X-Tenant-Id"))
    await ask(gateway, CHAT, **{"X-Tenant-Id": "somebody"})
    await ask(gateway, CHAT)
    assert await refusal(gateway, "sk-nobody-0123456789", **{"X-Tenant-Id": "somebody"}) == 401
    assert await refusal(gateway, CHAT, **{"X-Tenant-Id": "a" * 129}) == 400
    told = [request.tenant_id for request in (*served.told.requests, *gateway.told.requests)]
    assert told == ["chat", "somebody", "chat"]


async def test_the_tier_comes_from_its_header(serve):
    served = await serve()
    for tier in ("fast", "Batch", "standard"):
        await ask(served, **{"X-Farebox-Tier": tier})
    assert [request.tier for request in served.told.requests] == ["fast", "batch", "standard"]
    assert await refusal(served, **{"X-Farebox-Tier": "first-class"}) == 400
