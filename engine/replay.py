"""Replay: a workload through an engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from .arrival import Arrival
from .engine import Engine
from .pace import Pace
from .shield import Shield, shielded_signals

STEPS_PER_TICK = 256


def replay(
    engine: Engine,
    arrivals: Iterable[Arrival],
    pace: Pace | None = None,
    on_tick: Callable[[], None] | None = None,
) -> None:
    """Serve `arrivals`, a stream in order of arrival, to their end, and end the run.

    Without a pace, virtual time jumps over idle gaps. With one it follows the clock, and the run's heartbeat moves
    about twice a second, idle or not. `on_tick` is called after every heartbeat, and there is one every few hundred
    steps too; what is told after the last tick, the run's end included, is the caller's to flush.

    An interruption (KeyboardInterrupt, from a signal or from `on_tick`) ends the run at the last thing told and is
    raised again; signals are held back while a step is computed and while `on_tick` runs.

    Raises:
        ValueError: arrivals out of order, or one that the engine refuses.
    """
    with shielded_signals() as shield:
        try:
            _Replay(engine, arrivals, pace, on_tick, shield).run()
        except KeyboardInterrupt:
            engine.end()
            raise
        engine.end()


class _Replay:
    def __init__(
        self,
        engine: Engine,
        arrivals: Iterable[Arrival],
        pace: Pace | None,
        on_tick: Callable[[], None] | None,
        shield: Shield,
    ) -> None:
        self._engine = engine
        self._arrivals: Iterator[Arrival] = iter(arrivals)
        self._pace = pace
        self._on_tick = on_tick
        self._shield = shield
        self._steps = 0

    def run(self) -> None:
        if self._pace is not None:
            self._pace.start(self._engine.now_ns)
        coming = next(self._arrivals, None)
        while True:
            coming = self._feed(coming)
            if self._pace is not None:
                self._follow(self._pace)
            with self._shield:
                steps = self._advance(coming)
            if steps:
                self._count(steps)
                continue
            wakes_ns = self._wakes_ns(coming)
            if wakes_ns is None:
                break
            self._idle_until(wakes_ns)

    def _advance(self, coming: Arrival | None) -> int:
        """One step, or at full speed many at once; returns how many."""
        if self._pace is None and (steps := self._engine.leap(None if coming is None else coming.arrived_ns)):
            return steps
        return int(self._engine.step())

    def _feed(self, coming: Arrival | None) -> Arrival | None:
        """Add what has arrived by now; returns the first that has not."""
        while coming is not None and coming.arrived_ns <= self._engine.now_ns:
            with self._shield:
                self._engine.add(coming)
            following = next(self._arrivals, None)
            if following is not None and following.arrived_ns < coming.arrived_ns:
                raise ValueError(f"request {following.request_id} arrives before {coming.request_id} that came first")
            coming = following
        return coming

    def _wakes_ns(self, coming: Arrival | None) -> int | None:
        instants = (self._engine.wakes_ns, None if coming is None else coming.arrived_ns)
        return min((at for at in instants if at is not None), default=None)

    def _idle_until(self, at_ns: int) -> None:
        while self._engine.now_ns < at_ns:
            reached_ns = at_ns
            if self._pace is not None:
                self._pace.sleep_towards(at_ns)
                reached_ns = min(at_ns, self._pace.now_ns)
            with self._shield:
                self._engine.idle_until(reached_ns)
            if self._pace is not None and self._pace.is_beat_due():
                self._tick()

    def _follow(self, pace: Pace) -> None:
        """Wait until real time has caught up with the last step."""
        while True:
            if pace.is_beat_due():
                self._tick()
            if pace.now_ns >= self._engine.now_ns:
                return
            pace.sleep_towards(self._engine.now_ns)

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps >= STEPS_PER_TICK:
            self._steps = 0
            self._tick()

    def _tick(self) -> None:
        with self._shield:
            self._engine.heartbeat()
            if self._on_tick is not None:
                self._on_tick()
