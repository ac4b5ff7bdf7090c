"""The engine: continuous batching in virtual time."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter

from ..events import DecodeRun, FinishReason, Sink
from ..roofline.step_model import UNIT_BITS
from .arrival import Arrival
from .block_pool import BlockPool
from .config import EngineConfig
from .decoders import Decoders
from .integrity import check_integrity
from .load import Load
from .occupancy import Occupancy
from .prefix_cache import PrefixCache
from .recorder import Recorder
from .riders import Chunk, Riders
from .schedulers import scheduler_for
from .sequence import Sequence
from .waiting import WaitingQueue


class Engine:
    """One replica, from its start at `started_ns` (UTC) on. It tells `sink` what it does; it owns its clock.

    For the first `load_ns` it loads its model: its clock begins when it can serve.
    Drive it with `add`, `step` (or `leap`, many steps at once) and, when a step finds nobody to carry, `idle_until`;
    `replay` does that for a whole workload. Same inputs, same events.
    """

    def __init__(self, config: EngineConfig, sink: Sink, started_ns: int, load_ns: int = 0) -> None:
        self.config = config
        self._token_units = config.step_model.attention(1, 0)
        self._pool = _pool_of(config)
        self._decoders = Decoders(config.block_size, self._token_units)
        self._riders = Riders(self._pool, self._decoders, config.speculation)
        self._waiting = WaitingQueue()
        self._scheduler = scheduler_for(config, self._waiting, self._riders)
        self._recorder = Recorder(config, sink, started_ns, load_ns)
        self._can_leap = self._recorder.can_leap
        self._arrivals = 0
        self._served: dict[str, Sequence] = {}
        self._hang_ups: list[tuple[int, str]] = []
        self._rode = 0
        self._base_ns = started_ns
        self._clock = load_ns << UNIT_BITS
        """Clock units since the start: an integer, so that it never drifts."""
        self._now_ns = started_ns + load_ns
        self._cold_units = config.cold_start_ns << UNIT_BITS

    @property
    def now_ns(self) -> int:
        """The engine's clock, UTC."""
        return self._now_ns

    @property
    def waiting(self) -> int:
        """Requests in its queue."""
        return len(self._waiting)

    def riding_at(self, at_ns: int) -> int:
        """Sequences on board at an instant of the last step or later: who got off when it ended rode until then."""
        return self._rode if at_ns < self._now_ns else len(self._riders.running)

    @property
    def wakes_ns(self) -> int | None:
        """When an idle engine will run again without a further arrival; None: never."""
        return self._scheduler.wakes_ns()

    def add(self, arrival: Arrival) -> None:
        """Queue a request; one that can never fit into the KV cache ends at once as rejected.

        Raises:
            ValueError: it is still to come, has an impossible length, or its id is being served already.
        """
        if arrival.arrived_ns > self._now_ns:
            raise ValueError(f"request {arrival.request_id} arrives after now: idle until then first")
        if arrival.prompt_tokens < 1 or arrival.target_tokens < 0:
            raise ValueError(
                f"request {arrival.request_id} needs a prompt of at least one token and no negative length"
            )
        if arrival.request_id in self._served:
            raise ValueError(f"request {arrival.request_id} is being served already")
        prefix = self._pool.prefix(arrival.prompt_tokens, arrival.prefix_ids)
        seq = Sequence(arrival, prefix, self._arrivals, self.config.rank(arrival))
        self._arrivals += 1
        if self.config.speculation is not None:
            seq.draft_key = self.config.speculation.key(arrival.request_id)
        if self._pool.blocks_for(seq.most_tokens + self.config.lookahead) > self._pool.total:
            self._recorder.request(seq, self._now_ns, "rejected")
            return
        self._served[seq.request_id] = seq
        self._waiting.put(seq)
        if arrival.abort_ns is not None:
            heapq.heappush(self._hang_ups, (arrival.abort_ns, seq.request_id))

    def abort(self, request_id: str) -> None:
        """The client hung up: the coming step has its seat and its blocks. A request that has ended is left alone."""
        seq = self._served.get(request_id)
        if seq is None:
            return
        if seq in self._riders:
            self._riders.leave(seq)
        else:
            self._waiting.remove(seq)
        self._end(seq, "abort")

    def step(self) -> bool:
        """Run one iteration; False: nobody is on board (see `wakes_ns`), and no time passes."""
        if self._hang_ups:
            self._drop_hung_up()
        schedule = self._scheduler.schedule(self._now_ns)
        if not self._riders.running:
            return False
        load = Load.of(self._riders, schedule.chunks, self.config.step_model, self._token_units)
        units = self.config.step_model.step(load.rows, load.attn)
        started_ns = self._now_ns
        self._rode = load.riders
        self._clock += units + self._warm_up()
        self._now_ns = self._base_ns + (self._clock >> UNIT_BITS)
        self._recorder.step(started_ns, self._now_ns, schedule, load, len(self._waiting))
        self._get_off(self._advance(schedule.chunks, load, units, started_ns, self._now_ns))
        return True

    def leap(self, until_ns: int | None) -> int:
        """Run the coming steps at once while all they do is decode for the same riders; returns how many that were.

        0: the coming step does more than that, so call `step`. The last of the steps is the first that ends at
        `until_ns` (None: never) or later. Needs a sink that is a `DecodeSink`; the steps are the same as one by one.
        """
        if self._hang_ups:
            self._drop_hung_up()
        steady = self._scheduler.steady() if self._can_leap else None
        if steady is None:
            return 0
        steps = self._steps_until(until_ns, self._decoders.steps_alike(steady.spare_blocks))
        if not steps:
            return 0
        run = self._decode_run(steps, steady.held_by)
        self._clock += self._units(run.base_units, steps)
        self._now_ns = self._base_ns + (self._clock >> UNIT_BITS)
        self._pool.allocate(self._decoders.allocate(steps))
        self._recorder.decodes(run, self._now_ns)
        model, riders = self.config.step_model, self._decoders.seqs
        self._rode = riders
        shared_units = model.overhead // riders + model.linear(riders) // riders
        self._get_off(self._decoders.advance(shared_units, steps))
        return steps

    def idle_until(self, at_ns: int) -> None:
        """Let time pass without a step, up to `at_ns` (UTC). The past is no error: the clock stays.

        Raises:
            ValueError: somebody is on board.
        """
        if self._riders.running:
            raise ValueError("an engine with riders is not idle")
        if at_ns > self._now_ns:
            self._clock = (at_ns - self._base_ns) << UNIT_BITS
            self._now_ns = at_ns

    def outputs(self) -> Iterator[tuple[str, int]]:
        """Everybody on board, by request id, with the number of output tokens so far."""
        for seq in self._riders.running.values():
            yield seq.request_id, self._decoders.generated(seq)

    def occupancy(self) -> Occupancy:
        """Who is on board and who waits, and the KV blocks in use, between two steps."""
        return Occupancy(len(self._riders), len(self._waiting), self._pool.used, self._pool.total)

    def heartbeat(self) -> None:
        """Tell that everything before now has been told."""
        self._recorder.heartbeat(self._now_ns)

    def end(self) -> None:
        """End the run at the last instant that was told: the end of its last step, request or heartbeat."""
        self._recorder.end()

    def check_integrity(self) -> None:
        """Recount all seats, tokens and KV blocks; raises `IntegrityError` when the books do not balance."""
        check_integrity(self._served, self._waiting, self._riders)

    def _units(self, base_units: int, steps: int) -> int:
        """Clock units that the coming steps take when all they do is decode."""
        decoders = self._decoders
        seen = decoders.seen * steps + decoders.seqs * steps * (steps - 1) // 2
        return base_units * steps + self._token_units * seen

    def _steps_until(self, until_ns: int | None, most: int) -> int:
        """The fewest decode steps that reach `until_ns` or the next hang-up, but not more than `most`."""
        ends = [self._hang_ups[0][0]] if self._hang_ups else []
        ends += [] if until_ns is None else [until_ns]
        if not ends or not most:
            return most
        left = ((min(ends) - self._base_ns) << UNIT_BITS) - self._clock
        base_units = self.config.step_model.step(self._decoders.seqs, 0)
        return min(most, 1 + bisect_left(range(1, most + 1), left, key=lambda steps: self._units(base_units, steps)))

    def _decode_run(self, steps: int, held_by: str | None) -> DecodeRun:
        return DecodeRun(
            first_seq=self._recorder.steps,
            steps=steps,
            base_ns=self._base_ns,
            clock=self._clock,
            base_units=self.config.step_model.step(self._decoders.seqs, 0),
            token_units=self._token_units,
            idle_before_ns=self._now_ns - self._recorder.last_end_ns,
            waiting=len(self._waiting),
            held_by=held_by,
            kv_blocks_total=self._pool.total,
            groups=self._decoders.groups(),
        )

    def _drop_hung_up(self) -> None:
        while self._hang_ups and self._hang_ups[0][0] <= self._now_ns:
            self.abort(heapq.heappop(self._hang_ups)[1])

    def _warm_up(self) -> int:
        """Clock units that the coming step takes longer because it is the engine's first."""
        cold, self._cold_units = self._cold_units, 0
        return cold

    def _advance(self, chunks: list[Chunk], load: Load, units: int, scheduled_ns: int, ended_ns: int) -> list[Sequence]:
        """Everybody's rows are computed by `ended_ns` (UTC): sample. Returns who got its last token."""
        linear = units - load.attn - self.config.step_model.overhead
        overhead = self.config.step_model.overhead // load.seqs
        done = self._decoders.advance(overhead + linear // load.rows)
        for chunk, attn in zip(chunks, load.chunk_attn, strict=True):
            seq, completes, output_tokens = chunk.seq, chunk.completes, chunk.output_tokens
            seq.gpu_units += overhead + linear * chunk.rows // load.rows + attn
            seq.num_computed += chunk.rows - chunk.drafts + chunk.accepted
            if seq.scheduled_ns is None:
                seq.scheduled_ns = scheduled_ns
            if completes and self._sample(seq, output_tokens, ended_ns):
                done.append(seq)
        return done

    def _get_off(self, done: list[Sequence]) -> None:
        for seq in sorted(done, key=attrgetter("boarded")):
            self._riders.leave(seq)
            self._end(seq, seq.arrival.natural_end)

    def _sample(self, seq: Sequence, output_tokens: int, ended_ns: int) -> bool:
        """Keep what a chunk that reached the newest token yields by `ended_ns`. Returns whether that was all."""
        seq.num_output += output_tokens
        if seq.num_output and seq.first_token_ns is None:
            seq.first_token_ns = ended_ns
        if seq.num_output == seq.target:
            return True
        self._riders.begin_decoding(seq)
        return False

    def _end(self, seq: Sequence, reason: FinishReason) -> None:
        del self._served[seq.request_id]
        self._recorder.request(seq, self._now_ns, reason)


def _pool_of(config: EngineConfig) -> BlockPool:
    if config.enable_prefix_caching:
        return PrefixCache(config.usable_blocks, config.block_size, config.prefix_block_tokens)
    return BlockPool(config.usable_blocks, config.block_size)
