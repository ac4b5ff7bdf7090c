"""The pool: an endpoint's replicas at work, and the queue before them."""

from __future__ import annotations

from collections import deque

from ..arrival import Arrival
from .endpoint import Endpoint
from .life import Life, RunId, SinkFor
from .refusals import Refusals


class Pool:
    """Sends each request to the least loaded replica that is up, the first of equals.

    When none is up a request waits for the next one; when none will ever come it is rejected.
    """

    def __init__(self, endpoint: Endpoint, start_ns: int, run_id: RunId, sink_for: SinkFor) -> None:
        self.lives = [Life(endpoint, number, start_ns, run_id, sink_for) for number in range(endpoint.replicas)]
        self._queue: deque[Arrival] = deque()
        self._refusals = Refusals(endpoint, run_id, sink_for)

    @property
    def is_busy(self) -> bool:
        """Whether anybody rides, or waits."""
        return bool(self._queue) or any(life.is_busy for life in self.lives)

    def arrive(self, arrival: Arrival) -> int:
        """Take a request when it arrives; returns the steps taken until then."""
        steps = self.advance(arrival.arrived_ns)
        self._place(arrival, arrival.arrived_ns)
        return steps

    def advance(self, until_ns: int) -> int:
        """Let time pass; whoever waits gets on when a replica is ready. Returns the steps taken."""
        steps = 0
        while self._queue and (ready_ns := self._next_ready_ns()) is not None and ready_ns <= until_ns:
            steps += self._advance(ready_ns)
            for _ in range(len(self._queue)):
                self._place(self._queue.popleft(), ready_ns)
        return steps + self._advance(until_ns)

    def interrupt(self) -> None:
        """End all runs at the last thing told."""
        for life in self.lives:
            life.interrupt()
        self._refusals.close()

    def close(self, at_ns: int) -> None:
        """End all runs because the fleet ends."""
        for life in self.lives:
            life.close(at_ns)
        self._refusals.close()

    def _advance(self, until_ns: int) -> int:
        return sum(life.advance(until_ns) for life in self.lives)

    def _next_ready_ns(self) -> int | None:
        return min((ready_ns for life in self.lives if (ready_ns := life.ready_ns) is not None), default=None)

    def _place(self, arrival: Arrival, at_ns: int) -> None:
        up = [life for life in self.lives if life.is_open(at_ns)]
        if up:
            min(up, key=lambda life: (life.load(at_ns), life.number)).take(arrival, at_ns)
        elif self._next_ready_ns() is not None:
            self._queue.append(arrival)
        else:
            self._refusals.tell(arrival)
