"""Traffic: the made-up requests of one tenant."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from ...events import Tier
from ..arrival import Arrival

_NS_PER_S = 1_000_000_000


@dataclass(frozen=True)
class Lengths:
    """Token counts with a long tail: log-normal around `median`, never outside [`least`, `most`]."""

    median: int
    sigma: float
    least: int
    most: int

    def draw(self, rng: Random) -> int:
        """One length."""
        while not self.least <= (tokens := round(rng.lognormvariate(math.log(self.median), self.sigma))) <= self.most:
            pass
        return tokens


@dataclass(frozen=True)
class Traffic:
    """How one tenant asks: how often, in which rhythm, for what, and how patiently.

    Arrivals are a Poisson process of `per_s` requests per second while the tenant is busy; with `busy_s` and `quiet_s`
    it is busy and quiet by turns, for that long on average.
    """

    tenant_id: str
    per_s: float
    prompt: Lengths
    output: Lengths
    tier: Tier = "standard"
    max_tokens: int | None = None
    busy_s: float | None = None
    quiet_s: float = 0.0
    phase_jitter: float = 1.0
    """0: the busy and quiet turns all last equally long; 1: their length is exponential."""
    abandoned: float = 0.0
    """Part of the clients that hang up, after `patience_s` on average."""
    patience_s: float = 4.0

    def arrivals(self, seed: int, start_ns: int) -> Iterator[Arrival]:
        """The tenant's requests from `start_ns` (UTC) on, without end. Same seed, same requests."""
        rng = Random(f"{seed}:{self.tenant_id}")
        for number, at_s in enumerate(self._instants(rng), start=1):
            arrived_ns = start_ns + int(at_s * _NS_PER_S)
            hangs_up = rng.random() < self.abandoned
            patience_ns = int(rng.expovariate(1 / self.patience_s) * _NS_PER_S)
            yield Arrival(
                request_id=f"{self.tenant_id}-{number}",
                tenant_id=self.tenant_id,
                tier=self.tier,
                arrived_ns=arrived_ns,
                prompt_tokens=self.prompt.draw(rng),
                output_tokens=self.output.draw(rng),
                max_tokens=self.max_tokens,
                abort_ns=arrived_ns + patience_ns if hangs_up else None,
            )

    def _instants(self, rng: Random) -> Iterator[float]:
        """Seconds since the start. A Poisson process forgets, so each busy turn begins afresh."""
        turn_s = 0.0
        while True:
            end_s = math.inf if self.busy_s is None else turn_s + self._turn(rng, self.busy_s)
            at_s = turn_s + rng.expovariate(self.per_s)
            while at_s < end_s:
                yield at_s
                at_s += rng.expovariate(self.per_s)
            turn_s = end_s + self._turn(rng, self.quiet_s)

    def _turn(self, rng: Random, mean_s: float) -> float:
        return mean_s * (1 - self.phase_jitter + self.phase_jitter * rng.expovariate(1.0))
