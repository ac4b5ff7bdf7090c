"""Asynchronous scheduling: the host plans a step while the GPU computes the one before it, as vLLM does on CUDA."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from ..events import FinishReason, Sink
from ..roofline.step_model import UNIT_BITS
from .config import EngineConfig
from .engine import Engine
from .integrity import check_integrity
from .load import Load
from .schedulers.scheduler import Schedule
from .sequence import Sequence

DEPTH = 2
"""Steps that are planned before the host waits for the first of them."""


def engine_of(config: EngineConfig, sink: Sink, started_ns: int, load_ns: int = 0) -> Engine:
    """The engine that a configuration asks for; see `Engine` for the arguments."""
    return (PipelinedEngine if config.async_scheduling else Engine)(config, sink, started_ns, load_ns)


class Plan(NamedTuple):
    """What the next step computes, and how long that takes alone, in clock units."""

    schedule: Schedule
    load: Load
    units: int


@dataclass(slots=True)
class Flight:
    """A step that has been planned and is not processed yet."""

    started: int
    """Clock units since the engine's start, as `ended`."""
    ended: int
    schedule: Schedule
    load: Load
    waiting: int
    done: list[tuple[Sequence, FinishReason]] = field(default_factory=list[tuple[Sequence, FinishReason]])
    """Whose request ends with it, and how."""


class PipelinedEngine(Engine):
    """An engine whose host is two steps ahead: at the end of step N it plans N+2, while N+1 runs.

    A sequence is planned as if its tokens on the way had come back. So whoever arrives waits for one more step; whose
    outputs are all planned is skipped, and keeps its seat and KV blocks until its last step has been processed. A
    client that hangs up is let go when what is on its way has been processed. `now_ns` is the host's time: the end of
    the last step processed.
    """

    def __init__(self, config: EngineConfig, sink: Sink, started_ns: int, load_ns: int = 0) -> None:
        super().__init__(config, sink, started_ns, load_ns)
        self._can_leap = False
        self._flights: deque[Flight] = deque()
        self._gpu_free = self._clock
        """When the GPU has computed all that is planned, in clock units."""
        self._unpaired_preemptions = 0

    @property
    def pressure(self) -> int:
        """How much there is to do, as vLLM's load balancer weighs it: 4 · waiting + running."""
        return 4 * len(self._waiting) + len(self._riders)

    def step(self) -> bool:
        """Plan a step, and process the oldest when two are on their way or there is nothing to plan.

        False: nobody is on board and nothing on its way, and no time passes.
        """
        if self._hang_ups:
            self._drop_hung_up()
        plan = self.plan()
        if plan is None and not self._flights:
            return False
        if plan is not None:
            self.launch(plan, plan.units)
        if plan is None or len(self._flights) == DEPTH:
            self.land(self._flights[0].ended)
        return True

    def abort(self, request_id: str) -> None:
        """See `Engine`. It computes nothing more, and is gone when what is on its way has been processed."""
        seq = self._served.get(request_id)
        if seq is None or not self._flights:
            super().abort(request_id)
            return
        if any(seq is ending for flight in self._flights for ending, _ in flight.done):
            return
        if seq in self._riders:
            self._riders.finish(seq)
        else:
            self._waiting.remove(seq)
        self._flights[-1].done.append((seq, "abort"))

    def check_integrity(self) -> None:
        """See `Engine`. Who was preempted with its last row on the way is neither on board nor waiting."""
        ending = {seq.request_id for flight in self._flights for seq, _ in flight.done if seq not in self._riders}
        served = {key: seq for key, seq in self._served.items() if key not in ending}
        check_integrity(served, self._waiting, self._riders)

    def plan(self) -> Plan | None:
        """Schedule the next step; None: there is nothing to compute."""
        schedule = self._scheduler.schedule(self._now_ns)
        load = Load.of(self._riders, schedule.chunks, self.config.step_model, self._token_units)
        if not load.rows:
            self._unpaired_preemptions += schedule.preemptions
            return None
        schedule = schedule._replace(preemptions=schedule.preemptions + self._unpaired_preemptions)
        self._unpaired_preemptions = 0
        return Plan(schedule, load, self.config.step_model.step(load.rows, load.attn))

    def launch(self, plan: Plan | None, units: int) -> int:
        """Let a step of `units` clock units begin when the GPU is free; None: it computes nothing of ours.

        Returns the clock at its end.
        """
        cold = self._warm_up()
        started = max(self._clock, self._gpu_free)
        self._gpu_free = started + cold + units
        if plan is not None:
            flight = Flight(started, self._gpu_free, plan.schedule, plan.load, len(self._waiting))
            self._flights.append(flight)
            ended_ns = self._base_ns + (flight.ended >> UNIT_BITS)
            for seq in self._advance(plan.schedule.chunks, plan.load, units, self._now_ns, ended_ns):
                self._riders.finish(seq)
                flight.done.append((seq, seq.arrival.natural_end))
        if self.config.gpus == 1:
            self._reach(self._clock + cold)  # the only worker starts in the host's own process
        return self._gpu_free

    def land(self, ended: int) -> None:
        """Wait until the clock is at `ended`; tell our step that ends then, and let those get off who are done."""
        self._reach(ended)
        if not self._flights or self._flights[0].ended != ended:
            return
        flight = self._flights.popleft()
        self._rode = flight.load.riders
        started_ns = self._base_ns + (flight.started >> UNIT_BITS)
        self._recorder.step(started_ns, self._now_ns, flight.schedule, flight.load, flight.waiting)
        for seq, reason in sorted(flight.done, key=lambda one: one[0].boarded):
            if seq in self._riders:
                self._riders.leave(seq)
            self._end(seq, reason)

    def _reach(self, clock: int) -> None:
        self._clock = max(self._clock, clock)
        self._now_ns = self._base_ns + (self._clock >> UNIT_BITS)
