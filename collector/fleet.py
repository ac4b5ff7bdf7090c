"""A fleet of embedded engines as a source: traffic in, the events of all engines recorded into one store."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..engine.arrival import Arrival
from ..engine.config import EngineConfig
from ..engine.fleet import Fleet, replay_fleet
from ..engine.pace import Pace
from ..engine.shield import shielded_signals
from ..engine.workloads.merge import peek
from ..errors import InputError
from .budget_watch import BudgetWatch
from .recorder import BULK_FLUSH_S, FLUSH_STEPS, HOT_FLUSH_S, Recorder
from .retold import Retold

if TYPE_CHECKING:
    from ..storage.store import Store

REST = 4
"""Between two flushes lies at least so many times what one takes."""


class FleetRecord(NamedTuple):
    """What was recorded: its runs as (engine_id, run_id), and whether it came to its end or was interrupted."""

    runs: frozenset[tuple[str, str]]
    finished: bool


def record_fleet(
    fleet: Fleet,
    arrivals: Iterable[Arrival],
    store: Store,
    *,
    inputs: Iterable[str],
    pace: Pace | None = None,
    on_tick: Callable[[int], None] | None = None,
) -> FleetRecord:
    """Run the fleet on `arrivals`, which `inputs` identifies, and record every engine into `store`.

    Without a `pace` it runs as fast as it can, straight into the archive. `on_tick` gets the number of requests told.
    What happened up to an interrupt is kept.
    """
    first, stream = peek(arrivals)
    if first is None:
        raise InputError("the trace holds no requests")
    named = tuple(inputs)
    for engine_id in (endpoint.engine_id(n) for endpoint in fleet.endpoints for n in range(endpoint.replicas)):
        store.check_overlap(engine_id, fleet.run_id(named, engine_id, 0), first.arrived_ns, first.arrived_ns + 1)
    recorders = _Recorders(store, bulk=pace is None)
    watch = BudgetWatch(store)

    def tick() -> None:
        if recorders.flush_if_due() and pace is not None:
            store.maintain(pace.now_ns)
            watch.look_if_due()
        if on_tick is not None:
            on_tick(recorders.told)

    gc.freeze()  # events are plain tuples without cycles: looking through all of them costs 5 % of a run
    with shielded_signals() as shield:
        try:
            replay_fleet(fleet, stream, recorders.open, inputs=named, pace=pace, on_tick=tick)
            finished = True
        except KeyboardInterrupt:
            finished = False
        with shield:
            recorders.flush()
            watch.look()
    for says in recorders.contradictions():
        print(says, file=sys.stderr)
    return FleetRecord(frozenset(recorders.keys), finished)


class _Recorders:
    """A recorder for every run, all on one store and flushed together; one that has ended is let go then."""

    def __init__(self, store: Store, *, bulk: bool) -> None:
        self.keys: list[tuple[str, str]] = []
        self._store = store
        self._bulk = bulk
        self._open: list[Recorder] = []
        self._retold: list[Retold] = []
        self._told = 0
        self._wait_s = self._flush_s = BULK_FLUSH_S if bulk else HOT_FLUSH_S
        self._flushed_at = time.monotonic()

    @property
    def told(self) -> int:
        """Requests told so far."""
        return self._told + sum(recorder.told for recorder in self._open)

    def open(self, config: EngineConfig) -> Recorder:
        """The recorder of a new run."""
        retold = Retold(self._store, config.engine_id, config.run_id)
        recorder = Recorder(self._store, bulk=self._bulk, retold=retold)
        self._open.append(recorder)
        self._retold.append(retold)
        self.keys.append((config.engine_id, config.run_id))
        return recorder

    def contradictions(self) -> list[str]:
        """What runs told again with other content, in words."""
        return [retold.says for retold in self._retold if retold.says]

    def flush_if_due(self) -> bool:
        """Flush when it is time or memory holds enough; true if it did."""
        waited_s = time.monotonic() - self._flushed_at
        if waited_s < self._wait_s and sum(recorder.kept for recorder in self._open) < FLUSH_STEPS:
            return False
        self.flush()
        return True

    def flush(self) -> None:
        """Flush all. The more engines there are the longer that takes, and the less often it is due."""
        began_at = time.monotonic()
        for recorder in self._open:
            recorder.flush()
        self._told += sum(recorder.told for recorder in self._open if recorder.has_ended)
        self._open = [recorder for recorder in self._open if not recorder.has_ended]
        self._flushed_at = time.monotonic()
        self._wait_s = max(self._flush_s, REST * (self._flushed_at - began_at))
