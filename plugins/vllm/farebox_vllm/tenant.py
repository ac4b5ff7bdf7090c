"""The tenant of a request, on its way from the API server's process to the scheduler's in vLLM's `trace_headers`."""

from __future__ import annotations

from typing import Any

TENANT, TIER = "x-tenant", "x-tier"
ANONYMOUS = "anonymous"
UNKNOWN = "unknown"
STANDARD = "standard"
TIERS = ("fast", STANDARD, "batch")
LONGEST_NAME = 128


def give_tenant(request: Any, tenant_id: str, tier: str) -> None:
    """Send the tenant along with a request to EngineCore; whatever was there under these names is replaced."""
    request.trace_headers = {**(request.trace_headers or {}), TENANT: tenant_id, TIER: tier}


def take_tenant(request: Any) -> tuple[str, str]:
    """Tenant and tier that came with a request; vLLM gets its trace headers back as it knows them."""
    headers: dict[str, str] = dict(request.trace_headers or {})
    if TENANT not in headers:
        return ANONYMOUS, STANDARD
    tenant_id, tier = headers.pop(TENANT), headers.pop(TIER, STANDARD)
    request.trace_headers = headers or None
    return tenant_id, tier if tier in TIERS else STANDARD
