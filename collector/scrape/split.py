"""The split of an interval's tokens among tenants, by what whoever sees requests says was used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from ...costing.apportion import apportion
from ...events import UNKNOWN_TENANT, Usage

STANDARD = "standard"
MOST_TENANTS = 10_000
_COUNTED = ("prompt_tokens", "cached_tokens", "output_tokens")


UsageFeed = Callable[[int], Iterable[Usage]]
"""Gives every usage up to an instant (UTC ns) once."""

Who = tuple[str, str]
"""Tenant and tier."""


class Balance:
    """What tenants used and what was booked to them, so that in the long run both are the same.

    An interval's tokens are the engine's; they go to tenants in the proportion of what they used and were not booked
    yet. What was booked to a tenant too early, because someone's usage was told late, is made up for later.
    """

    def __init__(self, nobody: Who) -> None:
        """`nobody` gets what nobody is known to have used."""
        self._nobody = nobody
        self._open: defaultdict[Who, int] = defaultdict(int)

    def used(self, who: Who, tokens: int) -> None:
        """Add what a tenant used."""
        if who not in self._open and len(self._open) >= MOST_TENANTS:
            who = self._nobody
        self._open[who] += tokens

    def book(self, tokens: int) -> dict[Who, int]:
        """Whose these tokens are; all of them nobody's while nobody used any."""
        owed = {who: left for who, left in sorted(self._open.items()) if left > 0}
        if not owed or not tokens:
            return {self._nobody: tokens} if tokens else {}
        parts = dict(zip(owed, apportion(tokens, list(owed.values())), strict=True))
        for who, part in parts.items():
            self._open[who] -= part
        self._open = defaultdict(int, {who: left for who, left in self._open.items() if left})
        return {who: part for who, part in parts.items() if part}


class Splitter:
    """Splits prompt rows, cached tokens and output tokens of one engine, each by its own balance."""

    def __init__(self, engine_id: str, feed: UsageFeed | None = None, tenant_id: str = UNKNOWN_TENANT) -> None:
        """`tenant_id` gets what the feed does not know of."""
        self._engine_id = engine_id
        self._feed = feed
        self.nobody: Who = (tenant_id, STANDARD)
        self.computed, self.cached, self.output = (Balance(self.nobody) for _ in range(3))

    def take(self, until_ns: int) -> None:
        """Take over what was used up to an instant."""
        for usage in self._feed(until_ns) if self._feed else ():
            if usage.engine_id == self._engine_id:
                self.add(usage)

    def add(self, usage: Usage) -> None:
        """Take over one usage."""
        who = (usage.tenant_id, usage.tier)
        self.computed.used(who, usage.prompt_tokens - usage.cached_tokens)
        self.cached.used(who, usage.cached_tokens)
        self.output.used(who, usage.output_tokens)


def moved_of_tenants(engine_id: str, at_ns: int, by_tenant: dict[str, dict[str, float]]) -> list[Usage]:
    """What a page that knows tenants (counter → tenant → tokens) says that they used."""
    tenants = sorted({tenant for tokens in by_tenant.values() for tenant in tokens})
    return [
        Usage(engine_id, tenant, STANDARD, at_ns, *(round(by_tenant.get(noun, {}).get(tenant, 0)) for noun in _COUNTED))
        for tenant in tenants
    ]


def seats(riders: int, rows: Sequence[int]) -> list[int]:
    """Riders told apart as their rows are; all of them the first one's while nobody has a row."""
    if not rows:
        return []
    return apportion(riders, rows) if any(rows) else [riders, *[0] * (len(rows) - 1)]
