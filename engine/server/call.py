"""A call: one HTTP request and the rides that it asked for."""

from __future__ import annotations

import asyncio

from ...events import Request
from ..arrival import Arrival


class Ride:
    """One sequence as its client sees it."""

    __slots__ = ("arrival", "call", "ended", "generated", "gone", "index", "last_token_ns")

    def __init__(self, arrival: Arrival, index: int, call: Call) -> None:
        self.arrival = arrival
        self.index = index
        """Which of the call's choices it is."""
        self.call = call
        self.generated = 0
        """Output tokens so far."""
        self.last_token_ns = arrival.arrived_ns
        """When the newest of them came; before the first, the arrival."""
        self.gone = False
        """Whether it leaves before its end, perhaps before it boards."""
        self.ended: Request | None = None


class Call:
    """The rides of one HTTP request, and the news of them."""

    def __init__(self, params_n: int) -> None:
        self.rides: list[Ride] = []
        self.params_n = params_n
        """Choices asked for per prompt."""
        self._news = asyncio.Event()

    @property
    def done(self) -> bool:
        """Whether every ride has ended."""
        return all(ride.ended is not None for ride in self.rides)

    def tell(self) -> None:
        """There is something new about a ride."""
        self._news.set()

    async def news(self) -> None:
        """Wait until there is something new since the last time."""
        await self._news.wait()
        self._news.clear()
