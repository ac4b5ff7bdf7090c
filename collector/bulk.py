"""Bulk recording: a workload through the jump engine into the archive, segment by segment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..costing.ledger import Bookkeeper
from ..costing.segments import Segments
from ..engine.arrival import Arrival
from ..engine.config import EngineConfig
from ..engine.jump.caching import jump_engine
from ..engine.jump.spell import Speller
from ..engine.shield import Shield
from ..events import Batch, Progress
from .tables import SegmentTables

if TYPE_CHECKING:
    from ..engine.jump.log import Segment
    from .keeper import BatchStream, Keeper
    from .retold import Retold

SEGMENT_STEPS = 65_536


def can_jump(config: EngineConfig) -> bool:
    """Whether the jump engine knows all that the configuration asks for."""
    first_come = config.mode == "continuous" and config.scheduling_policy == "fcfs"
    alone = config.speculation is None and not config.async_scheduling and not config.cold_start_ns
    plain = not config.step_model.prompt and not config.step_model.streams
    return first_come and alone and plain and config.fast_cap is None


class BulkRecorder:
    """Runs a workload and records it; a run that is told again is recorded once, as `Recorder` does it.

    `told` counts the requests so far, recorded before or not.
    """

    def __init__(
        self,
        config: EngineConfig,
        first: Arrival,
        rest: Iterable[Arrival],
        store: Keeper,
        retold: Retold | None = None,
    ) -> None:
        self.told = 0
        self._retold = retold
        self._config = config
        self._engine = jump_engine(config, first, rest)
        self._speller = Speller(config, self._engine.inflow)
        self._run = config.run(first.arrived_ns)
        known = store.progress(config.engine_id, config.run_id)
        self._progress = known or Progress(0, 0, first.arrived_ns)
        self._recorded = None if known is None else store.run(config.engine_id, config.run_id)
        self._books = Bookkeeper(self._run, self._progress.covered_ns, self._progress.steps)

    def record(self, stream: BatchStream, shield: Shield, on_tick: Callable[[], None]) -> bool:
        """Run to the end, or to an interrupt: then false, and what happened until then is recorded."""
        try:
            while self._advance(stream, shield):
                on_tick()
            finished = True
        except KeyboardInterrupt:
            finished = False
        with shield:
            self._end(stream)
        return finished

    def _advance(self, stream: BatchStream, shield: Shield) -> bool:
        with shield:
            segment = self._engine.segment(SEGMENT_STEPS)
            if segment is None:
                return False
            self._tell(segment, stream)
        return True

    def _tell(self, segment: Segment, stream: BatchStream) -> None:
        tables = SegmentTables(self._config, self._speller.spell(segment))
        told_before, self.told = self.told, self.told + tables.requests.num_rows
        self._run = self._run._replace(heartbeat_ns=segment.now_ns)
        steps, shares, step_of, segments = tables.steps, tables.shares, tables.step_of, tables.segments
        known = min(max(self._progress.steps - segment.first, 0), segment.steps)
        again = max(self._progress.requests - told_before, 0)
        requests = tables.requests.slice(again)
        cells = int(np.searchsorted(step_of, known)) if known else 0
        if self._retold is not None:
            self._retold.compare(steps.slice(0, known), shares.slice(0, cells), tables.requests.slice(0, again))
            if self._retold.count:
                return
        if known:
            steps, shares, step_of = steps.slice(known), shares.slice(cells), step_of[cells:] - known
            segments = Segments(segments.starts[known:] - cells, step_of)
        if not steps.num_rows and not requests.num_rows:
            return
        ledger = self._books.book(steps, shares, requests, segment.now_ns, (step_of, segments))
        self._progress = Progress(
            self._progress.steps + steps.num_rows, self._progress.requests + requests.num_rows, self._books.covered_ns
        )
        run = self._run._replace(heartbeat_ns=self._books.covered_ns)
        stream.append(Batch(run, steps, shares, requests, ledger, self._progress))

    def _end(self, stream: BatchStream) -> None:
        """Record that the run ended with the last thing told, unless the store knows of more, or of something else."""
        if self._retold is not None and self._retold.count:
            return
        run = self._run._replace(ended_ns=self._run.heartbeat_ns)
        if self._recorded is None or self._recorded.wall_end_ns < run.heartbeat_ns or not self._recorded.ended_ns:
            stream.end(run, self._progress)
