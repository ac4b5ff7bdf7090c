"""The screens in a browser."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import psutil
import pytest

from farebox.cli.screens import Shown
from farebox.cli.web import HOST, web_server

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0")
KEEP_TERMINAL = """Object.defineProperty(Object.prototype, "terminal", {configurable: true, set(made) {
    window.kept = made; Object.defineProperty(this, "terminal", {value: made, writable: true}); }})"""
SCREEN = """Array.from({length: kept.rows}, (_, y) => kept.buffer.active.getLine(y).translateToString()).join("\\n")"""
COLOURS = """new Set(Array.from(document.querySelectorAll("canvas")).flatMap(canvas => {
    const drawn = canvas.getContext("2d");
    return drawn ? [...new Uint32Array(drawn.getImageData(0, 0, canvas.width, 40).data.buffer)] : [];
})).size"""
ASKED = """performance.getEntriesByType("resource").filter(e => e.transferSize).map(e => new URL(e.name).host)"""


@pytest.fixture(autouse=True)
async def childless():
    """Screens end with their page; textual-serve does not wait for their processes, which need this loop to end."""
    before = set(psutil.Process().children())
    yield
    async with asyncio.timeout(30):
        while set(psutil.Process().children()) - before:
            await asyncio.sleep(0.02)
    await asyncio.sleep(0.02)


@asynccontextmanager
async def chromium(profile):
    """A browser; gives a function that sends it a command of the DevTools protocol, and its answer."""
    from aiohttp import ClientSession

    command = (CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank")
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)
    try:
        while not (found := profile / "DevToolsActivePort").exists() or "\n" not in found.read_text():
            await asyncio.sleep(0.05)
        host = f"127.0.0.1:{found.read_text().split()[0]}"
        async with ClientSession() as session:
            pages = await (await session.get(f"http://{host}/json")).json()
            page = next(p for p in pages if p["type"] == "page")
            async with session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0) as devtools:
                yield _sender(devtools)
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


def _sender(devtools):
    number = 0

    async def send(method, **parameters):
        nonlocal number
        number += 1
        await devtools.send_json({"id": number, "method": method, "params": parameters})
        while (answer := await devtools.receive_json()).get("id") != number:
            pass
        return answer["result"]

    return send


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
async def test_a_real_browser_draws_the_screens_and_asks_nobody_else(recorded, tmp_path):
    pytest.importorskip("textual_serve")
    from aiohttp.test_utils import TestServer

    with socket.socket() as free:
        free.bind((HOST, 0))
        port = free.getsockname()[1]
    server = web_server(Path(recorded), Shown(page="live"), port)
    async with (
        asyncio.timeout(60),
        TestServer(await server._make_app(), host=HOST, port=port),
        chromium(tmp_path) as send,
    ):

        async def told(expression):
            return (await send("Runtime.evaluate", expression=expression, returnByValue=True))["result"].get("value")

        await send("Page.enable")
        await send("Page.addScriptToEvaluateOnNewDocument", source=KEEP_TERMINAL)
        await send("Page.navigate", url=f"http://{HOST}:{port}/")
        while "riding" not in str(screen := await told(SCREEN)):
            await asyncio.sleep(0.1)
        assert screen.lstrip().startswith("farebox")
        assert "llama-3-8b" in screen
        while await told(COLOURS) < 10:
            await asyncio.sleep(0.1)
        await told("kept.input('7')")
        while "Route it to the standard tier" not in await told(SCREEN):
            await asyncio.sleep(0.1)
        assert set(await told(ASKED)) == {f"{HOST}:{port}"}
        await told("kept.input('q')")
        while "-closed" not in await told("document.body.className"):
            await asyncio.sleep(0.1)


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
