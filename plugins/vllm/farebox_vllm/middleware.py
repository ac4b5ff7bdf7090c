"""Who asks: the tenant of an HTTP request, and how it stays with all that is done for that request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from .keys import Keys
from .log import LOG
from .settings import Settings, read_settings
from .tenant import ANONYMOUS, LONGEST_NAME, STANDARD, TIERS

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


class Caller(NamedTuple):
    """Whom a request is from."""

    tenant_id: str
    tier: str


CALLER: ContextVar[Caller | None] = ContextVar("farebox_caller", default=None)


class Access:
    """Tells callers apart by API key, or by headers that the operator trusts. It refuses nobody: vLLM does."""

    def __init__(self, settings: Settings) -> None:
        self._keys = None if settings.keys is None else Keys(settings.keys)
        self._tenant_header, self._tier_header = settings.tenant_header, settings.tier_header

    def caller(self, headers: Iterable[tuple[bytes, bytes]]) -> Caller:
        """The caller, from the headers of an ASGI scope."""
        found = {name.lower().decode("latin-1"): value.decode("latin-1") for name, value in headers}
        named = found.get(self._tenant_header, "").strip() if self._tenant_header else ""
        if not named or not named.isprintable() or len(named) > LONGEST_NAME:
            named = self._of_key(found)
        tier = found.get(self._tier_header, STANDARD).strip().lower() if self._tier_header else STANDARD
        return Caller(named, tier if tier in TIERS else STANDARD)

    def _of_key(self, headers: dict[str, str]) -> str:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        key = bearer.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", "").strip()
        if not key or self._keys is None:
            return ANONYMOUS
        return self._keys.tenant(key)


class TenantMiddleware:
    """ASGI middleware for `--middleware farebox_vllm.TenantMiddleware`, where the plugin cannot install itself."""

    def __init__(self, app: App, access: Access | None = None) -> None:
        self._app = app
        self._access = access or Access(read_settings())

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Serve a request on behalf of its caller."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        token = CALLER.set(self._caller(scope))
        try:
            await self._app(scope, receive, send)
        finally:
            CALLER.reset(token)

    def _caller(self, scope: Scope) -> Caller | None:
        try:
            return self._access.caller(scope["headers"])
        except Exception:
            LOG.debug("farebox: the caller of a request is not known", exc_info=True)
            return None
