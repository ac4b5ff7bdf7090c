"""Usage: what requests added since the last look, told by who sees requests but no steps."""

from __future__ import annotations

from typing import NamedTuple

from .request import Tier


class Usage(NamedTuple):
    """Tokens of one tenant and tier since the usage told before; says how an interval is split among tenants."""

    engine_id: str
    """The engine behind whoever tells."""
    tenant_id: str
    tier: Tier
    at_ns: int
    """When it was counted, UTC."""
    prompt_tokens: int
    """Prompt tokens, cached ones included."""
    cached_tokens: int
    output_tokens: int
