"""The HTTP application: OpenAI's routes over a service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from .answers import events, usage
from .bodies import ChatBody, CompletionBody, parse
from .call import Call
from .errors import ApiError, error_body
from .metrics import CONTENT_TYPE
from .service import Service

Handler = Callable[[Request], Awaitable[Response]]


def build_app(service: Service) -> Starlette:
    """The application that serves `service`."""
    return Starlette(
        routes=[
            Route("/v1/completions", _ask(service, CompletionBody), methods=["POST"]),
            Route("/v1/chat/completions", _ask(service, ChatBody), methods=["POST"]),
            Route("/v1/models", _models(service)),
            Route("/health", _health),
            Route("/version", _version(service)),
            Route("/metrics", _metrics(service)),
        ],
        exception_handlers={ApiError: _refuse, HTTPException: _refuse_route},
    )


def _ask(service: Service, kind: type[CompletionBody] | type[ChatBody]) -> Handler:
    async def ask(request: Request) -> Response:
        tenant_id = service.access.tenant(request.headers)
        body = parse(kind, await _read(request, service.offer.max_body_bytes))
        call, answer = service.ask(body, request.headers, tenant_id)
        if body.stream:
            stream = _stream(service, call, events(call, answer, with_usage=body.wants_usage))
            return StreamingResponse(stream, media_type="text/event-stream")
        if not await _finished(service, call, request):
            return Response(status_code=499)
        return JSONResponse(answer.whole(call.rides, usage(call.rides, body.n)))

    return ask


async def _stream(service: Service, call: Call, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A call's stream; leaving it early is hanging up."""
    try:
        async for piece in stream:
            yield piece
    finally:
        service.driver.hang_up(call)


async def _finished(service: Service, call: Call, request: Request) -> bool:
    """Wait for the end of a call; False: the client hung up before."""
    ends = asyncio.ensure_future(_end_of(call))
    leaves = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((ends, leaves), return_when=asyncio.FIRST_COMPLETED)
        return ends.done()
    finally:
        ends.cancel()
        leaves.cancel()
        service.driver.hang_up(call)


async def _end_of(call: Call) -> None:
    while not call.done:
        await call.news()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _read(request: Request, most: int) -> bytes:
    """The body, as far as it is JSON by its own account and not too large."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise ApiError(415, "Unsupported Media Type: Only 'application/json' is allowed")
    raw = bytearray()
    with suppress(ClientDisconnect):
        async for piece in request.stream():
            raw += piece
            if len(raw) > most:
                raise ApiError(413, f"The body is too large: at most {most} bytes are read.")
    return bytes(raw)


def _models(service: Service) -> Handler:
    async def models(request: Request) -> Response:
        service.access.tenant(request.headers)
        return JSONResponse(service.models())

    return models


async def _health(_: Request) -> Response:
    return Response()


def _version(service: Service) -> Handler:
    async def version(_: Request) -> Response:
        return JSONResponse(service.version())

    return version


def _metrics(service: Service) -> Handler:
    async def metrics(_: Request) -> Response:
        return Response(service.metrics.page(), headers={"content-type": CONTENT_TYPE})

    return metrics


async def _refuse(_: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        raise error
    return JSONResponse(error.body(), error.status)


async def _refuse_route(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return JSONResponse(error_body(error.status_code, error.detail), error.status_code, error.headers)
