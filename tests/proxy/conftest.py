"""Fixtures of the proxy's tests."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from proxy_wire import Asking, proxying, scripted


@pytest.fixture
async def start() -> AsyncIterator:
    """Start a proxy before a server that does as a script says; both stop with the test."""
    async with AsyncExitStack() as stack:

        async def begin(script, **settings):
            asked: list[Asking] = []
            port = await stack.enter_async_context(scripted(script, asked))
            proxied = await stack.enter_async_context(proxying(port, **settings))
            proxied.asked = asked
            return proxied

        yield begin
