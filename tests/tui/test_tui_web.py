"""The screens in a browser."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from farebox.cli.screens import Shown
from farebox.cli.web import HOST, web_server


async def test_a_browser_gets_the_page_and_the_screens(recorded):
    pytest.importorskip("textual_serve")
    from aiohttp.test_utils import TestClient, TestServer

    server = web_server(Path(recorded), Shown(page="live"), 0)
    assert (server.host, HOST) == ("127.0.0.1", "127.0.0.1")
    async with TestClient(TestServer(await server._make_app(), host=HOST)) as client:
        assert "Farebox" in await (await client.get("/")).text()
        seen = b""
        async with client.ws_connect("/ws?width=100&height=30") as socket, asyncio.timeout(30):
            await socket.send_str(json.dumps(["resize", {"width": 100, "height": 30}]))
            async for message in socket:
                seen += message.data if isinstance(message.data, bytes) else b""
                if b"llama-3-8b" in seen:
                    break
        assert b"riding" in seen


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"}])
async def test_other_sites_may_not_use_the_screens(recorded, headers):
    pytest.importorskip("textual_serve")
    from aiohttp.test_utils import TestClient, TestServer

    server = web_server(Path(recorded), Shown(page="live"), 0)
    async with TestClient(TestServer(await server._make_app(), host=HOST)) as client:
        for path in ("/", "/ws"):
            assert (await client.get(path, headers=headers)).status == 403
