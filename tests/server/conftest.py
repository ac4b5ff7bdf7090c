"""A real server on a free port, in the test's own event loop, and OpenAI's own client for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from openai import AsyncOpenAI
from served_engine import MOST_TOKENS, behind_http, driver_of

from farebox.collector.embedded import EmbeddedEngine
from farebox.engine.config import EngineConfig
from farebox.engine.server.access import Access
from farebox.engine.server.driver import Driver
from farebox.engine.server.metrics import Metrics
from farebox.engine.server.service import Offer
from farebox.events import Request, Run, Step
from farebox.roofline import Replica, gpu, model

MODEL = "llama-3.2-1b"


@dataclass
class Told:
    """A sink that keeps what it is told."""

    runs: list[Run] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def run(self, run: Run) -> None:
        self.runs.append(run)

    def step(self, step: Step, cells: object) -> None:
        self.steps.append(step)

    def request(self, request: Request) -> None:
        self.requests.append(request)


@dataclass
class Served:
    """A server that runs: what it was told, and how to talk to it."""

    driver: Driver
    metrics: Metrics
    told: Told
    port: int

    def client(self, key: str = "none", **headers: str) -> AsyncOpenAI:
        url = f"http://127.0.0.1:{self.port}/v1"
        return AsyncOpenAI(base_url=url, api_key=key, max_retries=0, timeout=60, default_headers=headers)

    async def raw(self, method: str, path: str, body: bytes | dict[str, Any] = b"", **headers: str) -> tuple[int, Any]:
        """One request by hand; the status and the body, as JSON where it is some."""
        sent = json.dumps(body).encode() if isinstance(body, dict) else body
        lines = {"Host": "farebox", "Connection": "close", "Content-Length": str(len(sent))}
        lines |= {"Content-Type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
        head = "".join(f"{name}: {text}\r\n" for name, text in lines.items())
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + sent)
        answer = await reader.read()
        writer.close()
        top, _, text = answer.partition(b"\r\n\r\n")
        is_json = b"application/json" in top
        return int(top.split()[1]), json.loads(text) if is_json else text

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds; the test fails if that takes too long."""
        async with asyncio.timeout(20):
            while not holds():
                await asyncio.sleep(0.002)


Serve = Callable[..., Any]


def config_of(**limits: Any) -> EngineConfig:
    return EmbeddedEngine(Replica(gpu("h100"), model(MODEL)), **limits).config(["test"])


@pytest.fixture
def unserved() -> Callable[..., Any]:
    """Make a driver that beats on `on_beat`, without a server."""
    return lambda on_beat: driver_of(config_of(), Told(), on_beat)[0]


@asynccontextmanager
async def serving(access: Access | None = None, **settings: Any) -> AsyncIterator[Served]:
    limits = {name: settings.pop(name) for name in ("mode", "max_num_seqs", "fast_cap") if name in settings}
    offer = Offer(**{"model_names": ("tiny",), "max_model_len": MOST_TOKENS} | settings)
    told, config = Told(), config_of(**limits)
    driver, metrics = driver_of(config, told, lambda: None)
    async with behind_http(config, offer, access or Access(), driver, metrics) as port:
        yield Served(driver, metrics, told, port)


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """Start a server with these settings; it stops with the test, whose books must balance then."""
    async with AsyncExitStack() as stack:

        async def start(access: Access | None = None, **settings: Any) -> Served:
            return await stack.enter_async_context(serving(access, **settings))

        yield start
