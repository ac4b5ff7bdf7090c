"""Replays: arrivals through one engine, or a fleet, straight into a tally."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from ..collector.bulk import BulkRecorder, can_jump
from ..collector.recorder import FLUSH_STEPS, Recorder
from ..costing.ledger import Bookkeeper
from ..engine.arrival import Arrival
from ..engine.config import EngineConfig
from ..engine.fleet import Endpoint, Fleet, replay_fleet
from ..engine.pipeline import engine_of
from ..engine.recorder import Recorder as Teller
from ..engine.replay import replay
from ..engine.sequence import Sequence as Ride
from ..engine.shield import shielded_signals
from .tally import Lived, Tally, book_nothing, one_ledger

OnTick = Callable[[int], None]
"""Gets the number of requests told so far."""
_FLUSH_S = 1.0


def replay_engine(
    config: EngineConfig,
    arrivals: Sequence[Arrival],
    started_ns: int,
    load_ns: int = 0,
    ends_ns: int | None = None,
    on_tick: OnTick | None = None,
) -> Lived:
    """Serve arrivals with one engine that is up from `started_ns` (UTC), loading first, until `ends_ns` or its last
    step, whichever is later.

    Raises KeyboardInterrupt when somebody interrupts.
    """
    tally, run = Tally(), config.run(started_ns, load_ns)
    if arrivals and can_jump(config) and arrivals[0].arrived_ns >= started_ns + load_ns:
        _jump(config, arrivals, tally, on_tick)
    elif arrivals:
        recorder = Recorder(tally, bulk=True)

        def tick() -> None:
            if recorder.flush_if_due() and on_tick is not None:
                on_tick(recorder.told)

        replay(engine_of(config, recorder, started_ns, load_ns), arrivals, None, tick)
        recorder.flush()
    return tally.close(run, ends_ns)


def _jump(config: EngineConfig, arrivals: Sequence[Arrival], tally: Tally, on_tick: OnTick | None) -> None:
    stream = iter(arrivals)
    recorder = BulkRecorder(config, next(stream), stream, tally)
    with shielded_signals() as shield:
        if not recorder.record(tally, shield, lambda: None if on_tick is None else on_tick(recorder.told)):
            raise KeyboardInterrupt


def refuse(config: EngineConfig, arrivals: Iterable[Arrival], at_ns: int) -> Lived:
    """A run that takes no time and tells requests that nobody serves."""
    tally = Tally()
    recorder = Recorder(tally, bulk=True)
    teller = Teller(config, recorder, at_ns)
    for arrival in arrivals:
        teller.request(Ride(arrival), arrival.arrived_ns, "rejected")
    teller.told_ns = at_ns
    teller.end()
    recorder.flush()
    return tally.close(config.run(at_ns), None)


def replay_endpoints(fleet: Fleet, arrivals: Sequence[Arrival], on_tick: OnTick | None = None) -> list[Lived]:
    """Serve arrivals with a fleet, as `farebox run --fleet` does, to the last integer.

    Endpoints of one replica that is always up do not need to be looked at together: they are run one by one.
    """
    if not arrivals:
        return []
    if all(_is_plain(endpoint) for endpoint in fleet.endpoints):
        return _one_by_one(fleet, arrivals, on_tick)
    recorders = _Recorders(on_tick)
    replay_fleet(fleet, arrivals, recorders.open, on_tick=recorders.tick)
    return recorders.close()


def _is_plain(endpoint: Endpoint) -> bool:
    unbounded = endpoint.hours is None and endpoint.from_ns is None and endpoint.until_ns is None
    return endpoint.replicas == 1 and unbounded


def _one_by_one(fleet: Fleet, arrivals: Sequence[Arrival], on_tick: OnTick | None) -> list[Lived]:
    start_ns, last_ns = arrivals[0].arrived_ns, arrivals[-1].arrived_ns
    asked: dict[str, list[Arrival]] = {endpoint.name: [] for endpoint in fleet.endpoints}
    for arrival in arrivals:
        asked[fleet.endpoint_for(arrival).name].append(arrival)
    configs = [endpoint.config(0, fleet.run_id((), endpoint.engine_id(0), 0)) for endpoint in fleet.endpoints]
    lived = [
        replay_engine(config, its, start_ns, 0, last_ns, on_tick)
        for config, its in zip(configs, asked.values(), strict=True)
    ]
    end_ns = max(each.run.wall_end_ns for each in lived)
    return [longer(each, end_ns) for each in lived]


def longer(lived: Lived, end_ns: int) -> Lived:
    """The run up until a later instant, idle meanwhile."""
    if lived.run.wall_end_ns >= end_ns:
        return lived
    run = lived.run._replace(heartbeat_ns=end_ns, ended_ns=end_ns)
    rest = book_nothing(Bookkeeper(run, lived.run.wall_end_ns, lived.steps.steps), end_ns)
    return lived._replace(run=run, ledger=one_ledger([lived.ledger, rest]))


class _Recorders:
    """A recorder and a tally for every run of a fleet."""

    def __init__(self, on_tick: OnTick | None) -> None:
        self._open: list[tuple[EngineConfig, Recorder, Tally]] = []
        self._done: list[Lived] = []
        self._on_tick = on_tick
        self._told = 0
        self._flushed_at = time.monotonic()

    def open(self, config: EngineConfig) -> Recorder:
        """The recorder of a new run."""
        tally = Tally()
        recorder = Recorder(tally, bulk=True)
        self._open.append((config, recorder, tally))
        return recorder

    def tick(self) -> None:
        """Book what has been told, when memory holds enough of it."""
        waited = time.monotonic() - self._flushed_at
        if waited < _FLUSH_S and sum(recorder.kept for _, recorder, _ in self._open) < FLUSH_STEPS:
            return
        self._flush()
        self._flushed_at = time.monotonic()
        if self._on_tick is not None:
            self._on_tick(self._told + sum(recorder.told for _, recorder, _ in self._open))

    def close(self) -> list[Lived]:
        """Every run, in the order in which they began to be told."""
        self._flush()
        return self._done

    def _flush(self) -> None:
        still: list[tuple[EngineConfig, Recorder, Tally]] = []
        for config, recorder, tally in self._open:
            recorder.flush()
            if not recorder.has_ended:
                still.append((config, recorder, tally))
                continue
            self._told += recorder.told
            self._done.append(tally.lived())
        self._open = still
