"""Textual's web server, for this machine's own pages only."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler
from textual_serve.server import Server

HERE = frozenset({"127.0.0.1", "localhost"})
OURS_ALONE = (
    "default-src 'self' 'unsafe-inline'; connect-src 'self' ws://127.0.0.1:* ws://localhost:*; img-src 'self' data:"
)
"""Content policy: textual-serve's page would fetch a font from Google, which is nobody's business here."""


class LocalServer(Server):
    """A `Server` that answers to its own page alone.

    Whatever site a browser shows may connect to an address of its own machine, and these screens can write files.
    """

    async def _make_app(self) -> web.Application:
        app = cast(Any, await super()._make_app())
        app.middlewares.append(refuse_strangers)
        return app


@web.middleware
async def refuse_strangers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse a request that another site's page makes, or that reached this machine by another name."""
    origin = request.headers.get("Origin")
    is_ours = origin is None or urlsplit(origin).netloc == request.host
    if urlsplit(f"//{request.host}").hostname not in HERE or not is_ours:
        raise web.HTTPForbidden(text=f"open http://127.0.0.1:{request.url.port} itself: other pages may not use it\n")
    answer = await handler(request)
    if not answer.prepared:
        answer.headers["Content-Security-Policy"] = OURS_ALONE
    return answer
