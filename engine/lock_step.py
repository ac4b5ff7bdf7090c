"""Lock step: data-parallel ranks of a mixture of experts, which share their experts and so each other's pace."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from .arrival import Arrival
from .pipeline import DEPTH, PipelinedEngine


class LockStep:
    """Ranks with a queue and a KV cache each, all of whose steps take as long as the slowest one's.

    Drive it as an `Engine`. A rank without work computes along with the others.
    """

    def __init__(self, ranks: Sequence[PipelinedEngine]) -> None:
        self._ranks = ranks
        self._waves: deque[int] = deque()
        """Clocks at which the steps on their way end."""

    @property
    def now_ns(self) -> int:
        """The ranks' clock, UTC."""
        return self._ranks[0].now_ns

    def add(self, arrival: Arrival) -> None:
        """Queue a request at the rank that has least to do, the first of several."""
        min(self._ranks, key=lambda rank: rank.pressure).add(arrival)

    def step(self) -> bool:
        """Plan a step on every rank, and process the oldest when two are on their way or there is nothing to plan.

        False: nobody is on board and nothing on its way, and no time passes.
        """
        plans = [rank.plan() for rank in self._ranks]
        units = max((plan.units for plan in plans if plan is not None), default=None)
        if units is None and not self._waves:
            return False
        if units is not None:
            self._waves.append(max(rank.launch(plan, units) for rank, plan in zip(self._ranks, plans, strict=True)))
        if units is None or len(self._waves) == DEPTH:
            ended = self._waves.popleft()
            for rank in self._ranks:
                rank.land(ended)
        return True

    def idle_until(self, at_ns: int) -> None:
        """Let time pass without a step; see `Engine.idle_until`."""
        for rank in self._ranks:
            rank.idle_until(at_ns)
