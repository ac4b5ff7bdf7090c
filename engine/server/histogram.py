"""A histogram as Prometheus has them: counts of values up to each bound."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate


class Histogram:
    """Counts values, several equal ones at once: everybody on board waits equally long for the next token."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += times
        self.sum += value * times

    def buckets(self) -> list[tuple[str, float]]:
        """(upper bound, values up to it), the last one without a bound."""
        labels = [*map(str, map(float, self._bounds)), "+Inf"]
        return list(zip(labels, accumulate(self._counts), strict=True))


def up_to(limit: int) -> tuple[float, ...]:
    """Bounds 1, 2, 5, 10, 20, 50 … up to `limit`, as vLLM builds them for token counts."""
    bounds: list[float] = []
    decade = 1
    while decade <= limit:
        bounds += [factor * decade for factor in (1, 2, 5) if factor * decade <= limit]
        decade *= 10
    return tuple(bounds)
