"""The proxy: a request goes to the server behind, its answer comes back as it was."""

from __future__ import annotations

from dataclasses import dataclass

from ...engine.server.access import Access, tier
from ...engine.server.errors import ApiError
from ..usage.ends import finish_of_status
from .answer import Answer, UpstreamError
from .asked import Asked, Forcing, asked_of, asks_less
from .headers import Headers, end_to_end, first
from .meter import Book, Meter, Rider, new_id
from .reading import Reading
from .upstream import Upstream
from .visit import REQUEST_ID, ClientLeftError, Visit

OPEN_PATHS = frozenset({"/health", "/healthz", "/ping", "/metrics", "/version"})
"""What monitoring reads (GET, HEAD); it needs no key."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What the proxy is told by its operator."""

    max_body_bytes: int = 64 * 2**20
    tenant_header: bytes = b"x-tenant-id"
    """How the server behind is told the tenant; what a client says there is dropped."""
    upstream_key: str | None = None
    """The server's own key, in place of the client's."""


class Proxy:
    """Passes requests on to `upstream`, and writes what they took into `book`."""

    def __init__(self, upstream: Upstream, access: Access, book: Book, rules: Rules) -> None:
        self._upstream, self._access, self._book, self._rules = upstream, access, book, rules
        self._forcing = Forcing.RUNNING
        self._is_llamacpp = False

    async def serve(self, visit: Visit) -> None:
        """Serve one request."""
        try:
            await self._serve(visit)
        except ApiError as error:
            visit.refuse(error)
        except ClientLeftError:
            pass  # nothing was asked yet
        finally:
            visit.call.hang_up()

    async def _serve(self, visit: Visit) -> None:
        _check_frame(visit)
        keys = visit.credentials()
        is_open = visit.path in OPEN_PATHS and visit.method in ("GET", "HEAD")
        tenant_id = "" if is_open else self._access.tenant(keys)
        asked_tier = tier(keys)
        body = await visit.body(self._rules.max_body_bytes)
        asked = asked_of(visit.method, visit.path, body)
        headers = self._headers(visit, tenant_id, asked)
        if asked is None:
            await self._pass_on(visit, headers, body)
            return
        request_id = new_id(visit.request_id)
        rider = Rider(request_id, tenant_id, asked_tier, asked.model, asked.max_tokens, asked.has_choices)
        await self._metered(visit, headers, asked, Meter(self._book, rider))

    async def _pass_on(self, visit: Visit, headers: Headers, body: bytes) -> None:
        try:
            answer = await self._ask(visit, headers, body)
            visit.begin(answer, edited=False)
            await answer.pour(visit.write)
            visit.finish()
        except UpstreamError as error:
            visit.fail(error)

    async def _metered(self, visit: Visit, headers: Headers, asked: Asked, meter: Meter) -> None:
        reading = None
        try:
            answer = await self._ask_forcing(visit, headers, asked)
            reading = Reading(answer, asked, meter, visit.write)
            visit.begin(answer, edited=reading.edits)
            await answer.pour(reading.feed)
            reading.finish()
            meter.end(finish_of_status(answer.status) or reading.reason)
            visit.finish()
        except UpstreamError as error:
            if reading is not None:
                reading.rest()
            meter.end("abort" if visit.call.is_over else "error")
            visit.fail(error)
        finally:
            meter.end("abort")  # the client left, or the proxy stops

    async def _ask_forcing(self, visit: Visit, headers: Headers, asked: Asked) -> Answer:
        """Ask with as much usage as the server gives; once more, with less, when it refuses just that."""
        while True:
            forcing = self._forcing
            body = asked.forced(forcing, timings=self._is_llamacpp)
            answer = await self._ask(visit, headers, body)
            if body is asked.body or answer.status not in (400, 422):
                return answer
            less = asks_less(forcing, answer.status, await answer.whole())
            if less is forcing:
                return answer
            self._forcing = min(self._forcing, less)

    async def _ask(self, visit: Visit, headers: Headers, body: bytes) -> Answer:
        has_body = body or visit.method in ("POST", "PUT", "PATCH")
        sized = [*headers, (b"content-length", str(len(body)).encode())] if has_body else headers
        target = self._upstream.address.path.encode() + visit.target
        answer = await self._upstream.ask(visit.method.encode(), target, sized, body, visit.call)
        self._is_llamacpp = first(answer.headers, b"server") == "llama.cpp"
        return answer

    def _headers(self, visit: Visit, tenant_id: str, asked: Asked | None) -> Headers:
        """What the server is told: the client's headers, the tenant, and an id for the request."""
        rules = self._rules
        less = [b"host", b"content-length", b"expect", rules.tenant_header]
        more: Headers = [(b"host", self._upstream.address.authority.encode())]
        if tenant_id:
            more.append((rules.tenant_header, _header_text(tenant_id)))
        if rules.upstream_key is not None:
            less += [b"authorization", b"x-api-key", b"api-key"]
            more.append((b"authorization", f"Bearer {rules.upstream_key}".encode()))
        if asked is not None:
            less.append(b"accept-encoding")
            more.append((b"accept-encoding", b"identity"))
        if visit.request_id is None:
            more.append((REQUEST_ID, visit.made_id.encode()))
        return more + end_to_end(visit.headers, *less)


def _check_frame(visit: Visit) -> None:
    """Refuse what the server behind may read as another request than the proxy does; raises `ApiError`."""
    if not visit.target.startswith(b"/"):
        raise ApiError(400, "The proxy serves paths of its own server only.")
    if b"#" in visit.target:
        raise ApiError(400, "A fragment (#) is no part of a request.")
    coding = first(visit.headers, b"transfer-encoding")
    if coding is not None and coding.lower() != "chunked":
        raise ApiError(501, f"Transfer-Encoding: the proxy reads chunked bodies, not {coding!r}.")


def _header_text(text: str) -> bytes:
    """Text as servers read it in a header: Latin-1 where that has all of it, else UTF-8."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()
