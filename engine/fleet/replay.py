"""Replay: a workload through a fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..arrival import Arrival
from ..pace import Pace
from ..replay import STEPS_PER_TICK
from ..shield import Shield, shielded_signals
from ..workloads.merge import peek
from .fleet import Fleet
from .life import SinkFor
from .pool import Pool

_STRIDE_NS = 10 * 10**9
"""Busy engines are never further apart than that, so that no one's events pile up."""


def replay_fleet(
    fleet: Fleet,
    arrivals: Iterable[Arrival],
    sink_for: SinkFor,
    *,
    inputs: Iterable[str] = (),
    pace: Pace | None = None,
    on_tick: Callable[[], None] | None = None,
) -> None:
    """Serve `arrivals`, a stream in order of arrival, to their end; `sink_for` is asked for a sink for every run.

    The fleet lives from the first arrival to the end of its last step: replicas that are up then run for all of that
    time, with or without riders. `inputs` names the traffic in the runs' ids. Pace, ticks and interruptions are as in
    `engine.replay.replay`. Engines advance side by side, and a request is placed by their loads at its arrival.

    Raises:
        ValueError: arrivals out of order, or one that an engine refuses.
    """
    first, stream = peek(arrivals)
    if first is None:
        return
    start_ns, named = first.arrived_ns, tuple(inputs)

    def run_id(engine_id: str, number: int) -> str:
        return fleet.run_id(named, engine_id, number)

    pools = {endpoint.name: Pool(endpoint, start_ns, run_id, sink_for) for endpoint in fleet.endpoints}
    with shielded_signals() as shield:
        replay = _FleetReplay(fleet, pools, start_ns, pace, on_tick, shield)
        try:
            replay.run(stream)
        except KeyboardInterrupt:
            replay.interrupt()
            raise


class _FleetReplay:
    def __init__(
        self,
        fleet: Fleet,
        pools: dict[str, Pool],
        start_ns: int,
        pace: Pace | None,
        on_tick: Callable[[], None] | None,
        shield: Shield,
    ) -> None:
        self._fleet = fleet
        self._pools = pools
        self._lives = [life for pool in pools.values() for life in pool.lives]
        self._now_ns = start_ns
        """Every engine has been brought to this instant; the one whose request came last may be ahead."""
        self._pace = pace
        self._on_tick = on_tick
        self._shield = shield
        self._steps = 0

    def run(self, arrivals: Iterable[Arrival]) -> None:
        if self._pace is not None:
            self._pace.start(self._now_ns)
        self._advance(self._now_ns)
        before: Arrival | None = None
        for arrival in arrivals:
            if before is not None and arrival.arrived_ns < before.arrived_ns:
                raise ValueError(f"request {arrival.request_id} arrives before {before.request_id} that came first")
            self._pass(arrival.arrived_ns)
            with self._shield:
                self._steps += self._pools[self._fleet.endpoint_for(arrival).name].arrive(arrival)
            self._tick_if_due()
            before = arrival
        self._finish(self._now_ns if before is None else before.arrived_ns)

    def interrupt(self) -> None:
        for pool in self._pools.values():
            pool.interrupt()

    def _pass(self, at_ns: int) -> None:
        """Let time pass until `at_ns`: all of it with a pace, else what is more than a stride."""
        while self._now_ns < at_ns - (_STRIDE_NS if self._pace is None else 0):
            self._stride(at_ns)
            self._tick_if_due()

    def _finish(self, end_ns: int) -> None:
        """Serve whoever is left, and end all runs with the last of it; what would begin after that does not."""
        self._advance(end_ns)
        while True:
            border_ns = min((at_ns for life in self._lives if (at_ns := life.border_ns) is not None), default=None)
            end_ns = max(end_ns, *(life.served_ns for life in self._lives))
            if not self._is_busy and (border_ns is None or border_ns > end_ns):
                break
            self._stride(None if border_ns is None else max(border_ns - 1, self._now_ns + 1))
            if self._is_busy:
                self._tick_if_due()
        with self._shield:
            for pool in self._pools.values():
                pool.close(end_ns)

    def _stride(self, at_ns: int | None) -> None:
        """Let some time pass, but none after `at_ns`; at once up to there when nobody is served meanwhile."""
        reached_ns = self._now_ns + _STRIDE_NS if at_ns is None or self._is_busy else at_ns
        if self._pace is not None:
            self._pace.sleep_towards(reached_ns if at_ns is None else at_ns)
            reached_ns = self._pace.now_ns
        self._advance(reached_ns if at_ns is None else min(at_ns, reached_ns))

    def _advance(self, until_ns: int) -> None:
        """Bring every engine to an instant."""
        with self._shield:
            self._now_ns = max(self._now_ns, until_ns)
            self._steps += sum(pool.advance(self._now_ns) for pool in self._pools.values())

    def _tick_if_due(self) -> None:
        is_due = self._steps >= STEPS_PER_TICK if self._pace is None else self._pace.is_beat_due()
        if not is_due:
            return
        self._steps = 0
        with self._shield:
            for life in self._lives:
                life.beat(self._now_ns)
            if self._on_tick is not None:
                self._on_tick()

    @property
    def _is_busy(self) -> bool:
        return any(pool.is_busy for pool in self._pools.values())
