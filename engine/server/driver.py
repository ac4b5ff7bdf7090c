"""The driver: runs an engine in real time, step by step, and tells every call what it got."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain

from ...events import Request, Sink
from ..arrival import Arrival
from ..config import EngineConfig
from ..engine import Engine
from ..occupancy import Occupancy
from ..pace import BEAT_NS, Pace
from .call import Call, Ride
from .metrics import Metrics
from .observer import Observer

MOST_STEPS_LATE = 64
"""Steps in a row that a driver who is late takes before clients get a turn."""
_NS_PER_S = 1_000_000_000


class Driver:
    """One engine on the running event loop. Steps take as long as the step model says.

    A step's outcome is told when real time reaches its end. A driver who is late takes steps without waiting, so that
    clients get what they missed at once and time is made up for. `on_beat` is called about twice a second, when
    everything up to then has been told to the sink.
    """

    def __init__(
        self,
        config: EngineConfig,
        sink: Sink,
        metrics: Metrics,
        on_beat: Callable[[], None],
    ) -> None:
        self._observer = Observer(sink)
        self._metrics = metrics
        self._on_beat = on_beat
        self._pace = Pace()
        started_ns = time.time_ns()
        self._pace.start(started_ns)
        self._engine = Engine(config, self._observer, started_ns)
        self._inbox: deque[Ride] = deque()
        self._rides: dict[str, Ride] = {}
        self._arrived = asyncio.Event()
        self._late_steps = 0

    @property
    def now_ns(self) -> int:
        """Real time, UTC, on the engine's clock."""
        return self._pace.now_ns

    @property
    def queued(self) -> int:
        """Requests that wait for a seat."""
        return self._engine.occupancy().waiting + len(self._inbox)

    def occupancy(self) -> Occupancy:
        """How full the engine is now, those included who wait for the step to end before they can be added."""
        return self._engine.occupancy()._replace(waiting=self.queued)

    def submit(self, arrivals: Sequence[Arrival], params_n: int = 1) -> Call:
        """Put requests in line that arrived now; they are one call's choices, in this order."""
        call = Call(params_n)
        call.rides = [Ride(arrival, index, call) for index, arrival in enumerate(arrivals)]
        self._inbox.extend(call.rides)
        self._arrived.set()
        return call

    def hang_up(self, call: Call) -> None:
        """The client is gone: the coming step has the seats and blocks of its rides. Those that ended stay as is."""
        self._put_off(call.rides)

    def put_off_all(self) -> None:
        """The server stops: everybody leaves with what they have got so far."""
        self._put_off([*self._rides.values(), *self._inbox])

    def check_integrity(self) -> None:
        """See `Engine`."""
        self._engine.check_integrity()

    async def run(self) -> None:
        """Drive until cancelled; then whoever still rides is put off, and the run ends."""
        try:
            while True:
                self._feed()
                self._beat_if_due()
                if self._engine.step():
                    await self._follow()
                    self._account()
                else:
                    self._account()
                    await self._idle()
        finally:
            self._end()

    def _feed(self) -> None:
        """Add those who arrived by now, on the engine's clock."""
        self._arrived.clear()
        while self._inbox and self._inbox[0].arrival.arrived_ns <= self._engine.now_ns:
            ride = self._inbox.popleft()
            self._rides[ride.arrival.request_id] = ride
            self._engine.add(ride.arrival)
            if ride.gone:
                self._engine.abort(ride.arrival.request_id)

    async def _follow(self) -> None:
        """Wait until real time reaches the end of the step; if it is past that, go on."""
        ahead_ns = self._engine.now_ns - self._pace.now_ns
        if ahead_ns > 0 or self._late_steps >= MOST_STEPS_LATE:
            self._late_steps = 0
            await asyncio.sleep(max(0, ahead_ns) / _NS_PER_S)
        else:
            self._late_steps += 1

    async def _idle(self) -> None:
        """Nobody is on board: wait for an arrival, for the batch that forms, or for the next sign of life."""
        wakes_ns, now_ns = self._engine.wakes_ns, self._pace.now_ns
        wait_ns = BEAT_NS if wakes_ns is None else min(BEAT_NS, max(0, wakes_ns - now_ns))
        if not self._inbox:
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_ns / _NS_PER_S):
                    await self._arrived.wait()
        self._engine.idle_until(self._idle_to_ns(wakes_ns))

    def _idle_to_ns(self, wakes_ns: int | None) -> int:
        """Now, or what should have ended the idleness: how late this process woke is not the engine's time."""
        instants = [self._pace.now_ns]
        if wakes_ns is not None:
            instants.append(wakes_ns)
        if self._inbox:
            instants.append(self._inbox[0].arrival.arrived_ns)
        return min(instants)

    def _beat_if_due(self) -> None:
        if self._pace.is_beat_due():
            self._engine.heartbeat()
            self._on_beat()

    def _account(self) -> None:
        """Tell calls and counters what the engine did since the last time: at most one step, and who ended."""
        steps, ended = self._observer.take()
        if not steps and not ended:
            return
        for step in steps:
            self._metrics.step(step)
        outputs = chain(self._engine.outputs(), ((request.request_id, request.output_tokens or 0) for request in ended))
        self._count_tokens(outputs)
        for request in ended:
            self._finish(request)

    def _count_tokens(self, outputs: Iterable[tuple[str, int]]) -> None:
        """Everybody's output tokens so far; the new ones came with the step that ended now."""
        at_ns = self._engine.now_ns
        gaps: Counter[int] = Counter()
        for request_id, generated in outputs:
            ride = self._rides[request_id]
            if generated == ride.generated:
                continue
            if ride.generated:
                gaps[at_ns - ride.last_token_ns] += 1
            else:
                self._metrics.first_token(at_ns - ride.arrival.arrived_ns)
            ride.generated, ride.last_token_ns = generated, at_ns
            ride.call.tell()
        for gap_ns, times in gaps.items():
            self._metrics.inter_token(gap_ns, times)

    def _finish(self, request: Request) -> None:
        ride = self._rides.pop(request.request_id)
        ride.ended = request
        self._metrics.request(request, ride.call.params_n)
        ride.call.tell()

    def _put_off(self, rides: Sequence[Ride]) -> None:
        for ride in rides:
            ride.gone = True
            self._engine.abort(ride.arrival.request_id)
        self._arrived.set()

    def _end(self) -> None:
        """Put everybody off, those included who have just arrived, and end the run."""
        self.put_off_all()
        self._engine.idle_until(self._pace.now_ns)
        self._feed()
        self._account()
        self._engine.heartbeat()
        self._engine.end()
