"""An arrival: a request as the engine gets it."""

from typing import NamedTuple

from ..events import FinishReason, Tier

LATEST_NS = 7_258_118_400_000_000_000
"""The first instant of 2200, UTC: later ones are typing errors, and nanoseconds do not count much further."""


class Arrival(NamedTuple):
    """A request and, because this is a replay, what it will turn out to generate. Times are UTC nanoseconds."""

    request_id: str
    tenant_id: str
    tier: Tier
    arrived_ns: int
    prompt_tokens: int
    """Length of the prompt, at least one token."""
    output_tokens: int
    """Tokens that it generates unless `max_tokens` cuts it short; 0: it is done with its prompt."""
    max_tokens: int | None = None
    """Output limit asked for; None: none."""
    prefix_ids: tuple[int, ...] | None = None
    """Ids of the prompt's prefix blocks; None: not known."""
    abort_ns: int | None = None
    """When the client hangs up if it is not served by then; None: it waits."""
    priority: int | None = None
    """Its rank under the policy `priority`, lower ones first; None: its tier's."""

    @property
    def target_tokens(self) -> int:
        """Output tokens at which it is done."""
        return self.output_tokens if self.max_tokens is None else min(self.output_tokens, self.max_tokens)

    @property
    def natural_end(self) -> FinishReason:
        """How it ends if nobody interferes: at its limit, or by itself."""
        return "length" if self.max_tokens is not None and self.output_tokens >= self.max_tokens else "stop"
