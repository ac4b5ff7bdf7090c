"""The life of a replica: run after run on one engine, each from loading to drained."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...events import Sink
from ..arrival import Arrival
from ..config import EngineConfig
from ..engine import Engine
from ..pipeline import engine_of
from .endpoint import Endpoint
from .hours import Shift

WAITING_WEIGHT = 4
"""A request that waits weighs as much as four that ride, as in vLLM's data-parallel balancing."""

SinkFor = Callable[[EngineConfig], Sink]
RunId = Callable[[str, int], str]


class _Start(NamedTuple):
    """The next run: when it begins to load, and when it can serve."""

    started_ns: int
    ready_ns: int


class Life:
    """One replica of an endpoint from `start_ns` (UTC) on; `sink_for` gives a sink for each of its runs.

    A replica whose hours include `start_ns` is loaded by then. A run begins to load as much before its hours as that
    takes, but never before the run before it has ended; at the end of its hours it takes no more, and ends when all
    that it has are served; that is done at once, since nothing can reach it meanwhile.
    """

    def __init__(self, endpoint: Endpoint, number: int, start_ns: int, run_id: RunId, sink_for: SinkFor) -> None:
        self.number = number
        self._endpoint = endpoint
        self._run_id = run_id
        self._sink_for = sink_for
        self._start_ns = start_ns
        self._shifts = endpoint.shifts(number, start_ns)
        self._shift: Shift | None = next(self._shifts, None)
        self._ended_ns: int | None = None
        self._engine: Engine | None = None
        self._ready_ns = start_ns
        self._runs = 0
        self.served_ns = start_ns
        """End of the last thing that it did for a request."""
        self._next = self._plan()

    @property
    def ready_ns(self) -> int | None:
        """When it can serve: since then if it is up, else in its next run; None: never again."""
        if self._engine is not None:
            return self._ready_ns
        return None if self._next is None else self._next.ready_ns

    @property
    def is_busy(self) -> bool:
        """Whether it has requests."""
        return self._engine is not None and _requests(self._engine) > 0

    @property
    def border_ns(self) -> int | None:
        """When its next run begins to load or, if it is up, its hours end; None: never."""
        if self._engine is None:
            return None if self._next is None else self._next.started_ns
        return None if self._shift is None else self._shift.end_ns

    def is_open(self, at_ns: int) -> bool:
        """Whether it takes requests at an instant that it has been advanced to."""
        return self._engine is not None and self._ready_ns <= at_ns

    def load(self, at_ns: int) -> int:
        """How busy it is at an instant that it has been advanced to: 4 · waiting + running."""
        engine = self._engine
        return 0 if engine is None else WAITING_WEIGHT * engine.waiting + engine.riding_at(at_ns)

    def take(self, arrival: Arrival, at_ns: int) -> None:
        """Take a request at an instant at which it is open."""
        if self._engine is None:
            raise ValueError(f"{self._endpoint.engine_id(self.number)} is not up: no request can go there")
        if self._engine.now_ns < at_ns:
            self._engine.idle_until(at_ns)
        self._engine.add(arrival)

    def advance(self, until_ns: int) -> int:
        """Let time pass: start, serve, drain and end whatever is due; returns the steps taken.

        An idle engine's clock stays, so that its events do not depend on how often it is advanced.
        """
        steps = 0
        while True:
            if self._engine is None:
                if self._next is None or self._next.started_ns > until_ns:
                    return steps
                self._begin(self._next)
                continue
            end_ns = None if self._shift is None else self._shift.end_ns
            if end_ns is None or end_ns > until_ns:
                return steps + self._serve(self._engine, until_ns)
            steps += self._serve(self._engine, None)
            self._end(end_ns)

    def beat(self, at_ns: int) -> None:
        """Tell that it lives, up to an instant that it has been advanced to; one that still loads has told so."""
        if self._engine is not None and self._ready_ns <= at_ns:
            if not _requests(self._engine):
                self._engine.idle_until(at_ns)
            self._engine.heartbeat()

    def interrupt(self) -> None:
        """End the run at the last thing told."""
        if self._engine is not None:
            self._engine.end()

    def close(self, at_ns: int) -> None:
        """End the run because the fleet ends; a load that has begun is finished."""
        if self._engine is not None:
            self._end(at_ns)

    def _plan(self) -> _Start | None:
        """The next run, for the first shift that is not over before the replica could serve."""
        while self._shift is not None:
            opens_ns, end_ns = self._shift
            free_ns = self._start_ns if self._ended_ns is None else self._ended_ns
            started_ns = max(opens_ns - self._endpoint.load_ns, free_ns)
            ready_ns = opens_ns if self._ended_ns is None else max(opens_ns, started_ns + self._endpoint.load_ns)
            if end_ns is None or ready_ns < end_ns:
                return _Start(started_ns, ready_ns)
            self._shift = next(self._shifts, None)
        return None

    def _begin(self, start: _Start) -> None:
        config = self._endpoint.config(self.number, self._run_id(self._endpoint.engine_id(self.number), self._runs))
        self._engine = engine_of(config, self._sink_for(config), start.started_ns, start.ready_ns - start.started_ns)
        self._ready_ns = start.ready_ns
        self._runs += 1

    def _serve(self, engine: Engine, until_ns: int | None) -> int:
        if not _requests(engine):
            return 0
        steps = serve(engine, until_ns)
        self.served_ns = engine.now_ns
        return steps

    def _end(self, at_ns: int) -> None:
        """End the run at an instant, or at the end of its last step if that is later."""
        engine = self._engine
        if engine is None:
            return
        engine.idle_until(at_ns)
        engine.heartbeat()
        engine.end()
        self._ended_ns, self._engine = engine.now_ns, None
        self._shift = next(self._shifts, None)
        self._next = self._plan()


def serve(engine: Engine, until_ns: int | None) -> int:
    """Run an engine until its clock is at `until_ns` (None: until nobody is left) or it idles; returns the steps."""
    total = 0
    while _requests(engine) and (until_ns is None or engine.now_ns < until_ns):
        steps = engine.leap(until_ns) or int(engine.step())
        total += steps
        if not steps and not _wake(engine, until_ns):
            break
    return total


def _wake(engine: Engine, until_ns: int | None) -> bool:
    """Let an idle engine's time pass to where it runs by itself; False when that is not before `until_ns`."""
    wakes_ns = engine.wakes_ns
    if wakes_ns is None or (until_ns is not None and wakes_ns >= until_ns):
        return False
    engine.idle_until(wakes_ns)
    return True


def _requests(engine: Engine) -> int:
    return engine.waiting + engine.riding_at(engine.now_ns)
