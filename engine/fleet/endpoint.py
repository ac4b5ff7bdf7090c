"""An endpoint: replicas of one model that are alike, with their limits, hours and price."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from ...roofline import Replica
from ..config import EngineConfig
from .errors import FleetError
from .hours import Hours, Shift

LOAD_BYTES_PER_S = 2 * 10**9
"""Bytes of weights that a replica loads in a second unless told otherwise: one local NVMe drive that is read from cold.
Published start-up logs of vLLM range from 0.3 GB/s (network disks) to 10 GB/s (files in the page cache)."""
MAX_REPLICAS = 1000
_NS_PER_S = 10**9


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """`replicas` engines of configuration `engine`, up in `hours`; `min_replicas` of them, the first ones, always.

    All of them exist from `from_ns` to `until_ns` only (UTC; None: ever).

    Raises:
        FleetError: no replica, or a stretch of time that is none.
    """

    name: str
    engine: EngineConfig
    """What each replica is; its `engine_id` and `run_id` are those of no run yet."""
    load_ns: int
    """From the start of a replica until its model is loaded; it is on the overhead account."""
    replicas: int = 1
    min_replicas: int = 0
    hours: Hours | None = None
    """None: always."""
    from_ns: int | None = None
    until_ns: int | None = None
    price: Decimal | None = None
    """An example price of one GPU-hour, in `currency`. It is told to people, and no bill uses it."""
    currency: str = "USD"

    def __post_init__(self) -> None:
        if not 1 <= self.replicas <= MAX_REPLICAS:
            raise FleetError(f"replicas is {self.replicas}; it must be between 1 and {MAX_REPLICAS}")
        if not 0 <= self.min_replicas <= self.replicas:
            raise FleetError(f"min_replicas is {self.min_replicas}; it must be between 0 and replicas, {self.replicas}")
        if self.load_ns < 0:
            raise FleetError("a model cannot load in less than no time")
        if self.from_ns is not None and self.until_ns is not None and self.until_ns <= self.from_ns:
            raise FleetError("until must be later than from")

    def engine_id(self, number: int) -> str:
        """The name of one of its engines, counted from 0."""
        return f"{self.name}-{number}"

    def config(self, number: int, run_id: str) -> EngineConfig:
        """The configuration of one run of one of its engines."""
        return replace(self.engine, engine_id=self.engine_id(number), run_id=run_id)

    def shifts(self, number: int, from_ns: int) -> Iterator[Shift]:
        """When a replica is up, from `from_ns` (UTC) on, in order."""
        first_ns = from_ns if self.from_ns is None else max(from_ns, self.from_ns)
        if self.hours is None or number < self.min_replicas:
            shifts = iter([Shift(first_ns, None)])
        else:
            shifts = self.hours.shifts(first_ns)
        for shift in shifts:
            start_ns, end_ns = max(shift.start_ns, first_ns), shift.end_ns
            if self.until_ns is not None:
                end_ns = self.until_ns if end_ns is None else min(end_ns, self.until_ns)
                if start_ns >= self.until_ns:
                    return
            yield Shift(start_ns, end_ns)


def load_ns(replica: Replica, bytes_per_s: int = LOAD_BYTES_PER_S) -> int:
    """How long a replica loads its weights, in nanoseconds."""
    return replica.model.resident_bytes(replica.weights) * _NS_PER_S // bytes_per_s
