"""Continuous batching, as vLLM V1 does it."""

from __future__ import annotations

from ..riders import Chunk
from ..sequence import Sequence
from .scheduler import Schedule, Scheduler, Steady


class ContinuousScheduler(Scheduler):
    """Running sequences first, then waiting ones while token budget, seats and KV blocks allow.

    When KV blocks are short, the newest rider is put off, or under the policy `priority` the one of the worst rank and
    latest arrival, until the rows of the others fit: a step that puts somebody off computes a row of all who stay.
    There are no phases: everybody's rows are what it has not computed yet, clipped to the budget. Every decoder gets
    its row in every step, since nobody boards without a row left in the budget.
    """

    def schedule(self, now_ns: int) -> Schedule:
        """See `Scheduler`. A step that preempts admits nobody."""
        preemptions = self._make_room()
        self.riders.allocate_decodes()
        budget = self.token_budget - self.riders.decoders.seqs
        chunks = self.prefill(budget)
        held_by = None if preemptions else self._admit(budget - sum(chunk.rows for chunk in chunks), chunks)
        return Schedule(chunks, preemptions, held_by)

    def steady(self) -> Steady | None:
        """See `Scheduler`. The head of the queue stays while seats, budget or KV blocks are short, or a cap holds."""
        riders, head = self.riders, self.waiting.head
        steady = super().steady()
        if steady is None or head is None or len(riders) >= self.seats or riders.decoders.seqs >= self.token_budget:
            return steady
        spare = steady.spare_blocks - riders.blocks_to_board(head)
        if spare < riders.decoders.blocks_needed:
            return steady
        fast = self._fast_at_cap()
        return None if fast is None else Steady(spare, fast.arrival.tenant_id)

    def _make_room(self) -> int:
        """Preempt riders until the others' next rows fit into the KV cache."""
        preemptions = 0
        while self._blocks_needed() > self.riders.pool.free:
            seq = self.riders.newest if self.config.scheduling_policy == "fcfs" else self.riders.last
            if self.riders.put_off(seq):
                self.waiting.put_back(seq)
            preemptions += 1
        return preemptions

    def _blocks_needed(self) -> int:
        if not self.riders.prefilling:
            return self.riders.decoders.blocks_needed
        budget = self.token_budget - self.riders.decoders.seqs
        return self.riders.blocks_needed(self.riders.chunks(budget))

    def _admit(self, budget: int, chunks: list[Chunk]) -> str | None:
        """Board from the queue, adding to `chunks`. Returns the tenant whose fast request kept others off."""
        while budget and len(self.riders.running) < self.seats:
            seq = self.waiting.head
            if seq is None or not self._fits(seq):
                break
            if (fast := self._fast_at_cap()) is not None:
                return fast.arrival.tenant_id
            self.waiting.remove(seq)
            self.riders.board(seq)
            chunk = self.riders.prefill(seq, budget)
            budget -= chunk.rows
            chunks.append(chunk)
        return None

    def _fast_at_cap(self) -> Sequence | None:
        """The fast request whose cap the riders have reached; None: none rides, or there is no cap."""
        cap = self.config.fast_cap
        return None if cap is None or len(self.riders.running) < cap else self.riders.fast

    def _fits(self, seq: Sequence) -> bool:
        """Whether all its tokens would fit, though only a chunk is allocated: else it would soon be preempted."""
        return self.riders.blocks_to_board(seq) <= self.riders.pool.free
