"""Continuous batching, as vLLM V1 does it."""

from __future__ import annotations

from ..riders import Chunk
from ..sequence import Sequence
from .scheduler import Schedule, Scheduler, Steady


class ContinuousScheduler(Scheduler):
    """Running sequences first, then waiting ones while token budget, seats and KV blocks allow.

    When KV blocks are short, the newest rider is put off, of the tier `batch` if any of it rides, or under the policy
    `priority` the one of the worst rank and latest arrival, until the rows of the others fit: a step that puts somebody
    off computes a row of all who stay. Batch riders are also put off for a fast request that could not board otherwise.
    There are no phases: everybody's rows are what it has not computed yet, clipped to the budget. Every decoder gets
    its row in every step, since nobody boards without a row left in the budget.
    """

    def schedule(self, now_ns: int) -> Schedule:
        """See `Scheduler`. A step that lacks KV blocks admits nobody, one that makes way only fast requests."""
        lacking = self._make_room()
        displaced = 0 if lacking else self._make_way()
        self.riders.allocate_decodes()
        budget = self.token_budget - self.riders.decoders.seqs
        chunks = self.prefill(budget)
        budget -= sum(chunk.rows for chunk in chunks)
        held_by = None if lacking else self._admit(budget, chunks, fast_only=displaced > 0)
        return Schedule(chunks, lacking + displaced, held_by)

    def steady(self) -> Steady | None:
        """See `Scheduler`. The head of the queue stays while seats, budget or KV blocks are short, or a cap holds."""
        riders, head = self.riders, self.waiting.head
        steady = super().steady()
        if steady is not None and head is not None and self._yielding(head):
            return None
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
            self._put_off(seq)
            preemptions += 1
        return preemptions

    def _make_way(self) -> int:
        """Preempt batch riders until the fast request at the head of the queue can board."""
        if (head := self.waiting.head) is None:
            return 0
        yielding, preemptions = self._yielding(head), 0
        while yielding and not self._has_room(head):
            self._put_off(yielding.pop())
            preemptions += 1
        return preemptions

    def _yielding(self, head: Sequence) -> list[Sequence]:
        """Batch riders without whom a fast request at the head of the queue could board, the first to go last.

        Nobody, if it would have to wait all the same: for a fast rider's cap, or for riders who are not put off for it.
        """
        if head.arrival.tier != "fast" or not self.riders.batch or self._fast_at_cap() is not None:
            return []
        yielding = [seq for seq in self.riders.batch if seq.rank > head.rank]
        if self.config.scheduling_policy == "priority":
            yielding.sort(key=lambda seq: (seq.rank, seq.number))
        rest = self.riders.without(yielding, self._chunks())
        fits = rest.rows < self.token_budget and self.riders.blocks_to_board(head) <= rest.free
        return yielding if fits else []

    def _has_room(self, seq: Sequence) -> bool:
        """Whether there is a seat, a row and KV blocks for it beside the coming rows of all who ride."""
        chunks = self._chunks()
        rows = self.riders.decoders.seqs + sum(chunk.rows for chunk in chunks)
        free = self.riders.pool.free - self.riders.blocks_needed(chunks)
        return len(self.riders) < self.seats and rows < self.token_budget and self.riders.blocks_to_board(seq) <= free

    def _put_off(self, seq: Sequence) -> None:
        if self.riders.put_off(seq):
            self.waiting.put_back(seq)

    def _blocks_needed(self) -> int:
        return self.riders.blocks_needed(self._chunks())

    def _chunks(self) -> list[Chunk]:
        """The coming chunks of all who prefill."""
        return self.riders.chunks(self.token_budget - self.riders.decoders.seqs)

    def _admit(self, budget: int, chunks: list[Chunk], *, fast_only: bool) -> str | None:
        """Board from the queue, adding to `chunks`. Returns the tenant whose fast request kept others off."""
        while budget and len(self.riders.running) < self.seats:
            seq = self.waiting.head
            if seq is None or not self._fits(seq):
                break
            if (fast := self._fast_at_cap()) is not None:
                return fast.arrival.tenant_id
            if fast_only and seq.arrival.tier != "fast":
                break
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
