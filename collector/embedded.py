"""The embedded engine as a source: traffic in, events recorded into a store."""

from __future__ import annotations

import gc
import json
import socket
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import chain
from typing import TYPE_CHECKING

from ..engine.arrival import Arrival
from ..engine.config import EngineConfig, Mode, Policy
from ..engine.pace import Pace
from ..engine.pipeline import engine_of
from ..engine.replay import replay
from ..engine.shield import shielded_signals
from ..engine.speculation import PER_MILLION, Speculation
from ..errors import FareboxError, InputError
from ..roofline import Replica
from ..storage.errors import StoreFullError
from .budget_watch import BudgetWatch
from .bulk import BulkRecorder, can_jump
from .recorder import Recorder
from .retold import Retold

if TYPE_CHECKING:
    from ..storage.store import Store
    from ..storage.stream import ArchiveStream

OnTick = Callable[[Recorder | BulkRecorder], None]


@dataclass(frozen=True)
class EmbeddedEngine:
    """An embedded engine to be run: its replica, its limits and its name."""

    replica: Replica
    mode: Mode = "continuous"
    scheduling_policy: Policy = "fcfs"
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    enable_prefix_caching: bool | None = None
    """None: if the traffic says which prompts begin alike."""
    num_speculative_tokens: int = 0
    """Tokens drafted per sequence and step; 0: no speculation."""
    acceptance_rate: float = 0.7
    """How often a drafted token is right if those before it are."""
    draft: Replica | None = None
    """The draft model on the same GPUs; None: drafts are free, as n-grams are."""
    batch_wait_ms: int = 50
    fast_cap: int | None = None
    async_scheduling: bool = False
    engine_id: str | None = None

    def config(
        self,
        inputs: Iterable[str],
        *,
        has_prefix_ids: bool = False,
        prefix_block_tokens: int = EngineConfig.prefix_block_tokens,
    ) -> EngineConfig:
        """The engine's configuration; `run_id` is a hash of it and of what identifies the traffic, `inputs`.

        `prefix_block_tokens`: tokens that each prefix id stands for.
        """
        replica = self.replica
        caching = has_prefix_ids if self.enable_prefix_caching is None else self.enable_prefix_caching
        try:
            config = EngineConfig.of(
                replica,
                self.draft,
                engine_id=self.engine_id or f"embedded-{replica.gpu.name}-{replica.model.name}",
                mode=self.mode,
                scheduling_policy=self.scheduling_policy,
                max_num_seqs=self.max_num_seqs,
                max_num_batched_tokens=self.max_num_batched_tokens,
                enable_prefix_caching=caching,
                prefix_block_tokens=prefix_block_tokens,
                speculation=self._speculation(),
                batch_wait_ms=self.batch_wait_ms,
                fast_cap=self.fast_cap,
                async_scheduling=self.async_scheduling,
            )
        except FareboxError:
            raise
        except ValueError as error:
            raise InputError(str(error)) from error
        identity = json.dumps([asdict(config), *inputs], sort_keys=True)
        return replace(config, run_id=sha256(identity.encode()).hexdigest()[:16], host=socket.gethostname())

    def _speculation(self) -> Speculation | None:
        if not self.num_speculative_tokens:
            return None
        return Speculation(self.num_speculative_tokens, round(self.acceptance_rate * PER_MILLION))


def record(
    config: EngineConfig,
    arrivals: Iterable[Arrival],
    store: Store,
    *,
    pace: Pace | None = None,
    on_tick: OnTick | None = None,
) -> bool:
    """Run the engine on `arrivals` and record everything into `store`; false if it was interrupted.

    Without a `pace` it runs as fast as it can, straight into the archive. What happened up to an interrupt is kept.
    """
    rest = iter(arrivals)
    first = next(rest, None)
    if first is None:
        raise InputError("the trace holds no requests")
    store.check_overlap(config.engine_id, config.run_id, first.arrived_ns, first.arrived_ns + 1)
    retold = Retold(store, config.engine_id, config.run_id)
    finished = _record(config, first, rest, store, retold, pace, on_tick)
    if retold.says:
        print(retold.says, file=sys.stderr)
    return finished


def _record(
    config: EngineConfig,
    first: Arrival,
    rest: Iterator[Arrival],
    store: Store,
    retold: Retold,
    pace: Pace | None,
    on_tick: OnTick | None,
) -> bool:
    if pace is not None:
        recorder = Recorder(store, bulk=False, retold=retold)
        return _record_stepwise(config, first, rest, recorder, store, pace, on_tick)
    gc.freeze()  # what a run tells has no cycles: looking through all of it costs 5 % of a run
    with store.archiving(config.engine_id, config.run_id) as stream:
        if can_jump(config):
            finished = _record_jumping(BulkRecorder(config, first, rest, store, retold), stream, on_tick)
        else:
            recorder = Recorder(store, bulk=True, stream=stream, retold=retold)
            finished = _record_stepwise(config, first, rest, recorder, store, None, on_tick)
    BudgetWatch(store).look()
    return finished


def _record_jumping(recorder: BulkRecorder, stream: ArchiveStream, on_tick: OnTick | None) -> bool:
    with shielded_signals() as shield:
        return recorder.record(stream, shield, lambda: None if on_tick is None else on_tick(recorder))


def _record_stepwise(
    config: EngineConfig,
    first: Arrival,
    rest: Iterator[Arrival],
    recorder: Recorder,
    store: Store,
    pace: Pace | None,
    on_tick: OnTick | None,
) -> bool:
    watch = BudgetWatch(store)

    def tick() -> None:
        if recorder.flush_if_due() and pace is not None:
            store.maintain(engine.now_ns)
            with suppress(StoreFullError):
                watch.look_if_due()
        if on_tick is not None:
            on_tick(recorder)

    engine = engine_of(config, recorder, first.arrived_ns)
    with shielded_signals() as shield:
        try:
            replay(engine, chain([first], rest), pace, tick)
            finished = True
        except KeyboardInterrupt:
            finished = False
        with shield:
            recorder.flush()
            if pace is not None:
                watch.look()
    return finished
