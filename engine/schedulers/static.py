"""Static batching: a batch rides together from the first row to the last token."""

from __future__ import annotations

from ..sequence import Sequence
from .scheduler import Schedule, Scheduler

_MS = 1_000_000


class StaticScheduler(Scheduler):
    """Forms a batch when it is full or the oldest request has waited long enough; nobody boards until all got off.

    A batch is full when every seat is taken or the next in line would not fit into the KV cache with its whole output:
    nobody is preempted here.
    """

    def schedule(self, now_ns: int) -> Schedule:
        """See `Scheduler`."""
        if not self.riders.running:
            self._form_batch(now_ns)
        self.riders.allocate_decodes()
        return Schedule(self.prefill(self.token_budget - self.riders.decoders.seqs))

    def wakes_ns(self) -> int | None:
        """When the oldest waiting request stops waiting for company."""
        oldest_ns = self.waiting.oldest_ns
        return None if oldest_ns is None else oldest_ns + self.config.batch_wait_ms * _MS

    def _form_batch(self, now_ns: int) -> None:
        batch = self._next_batch()
        full = len(batch) == self.seats or len(batch) < len(self.waiting)
        deadline_ns = self.wakes_ns()
        if full or (deadline_ns is not None and now_ns >= deadline_ns):
            for seq in batch:
                self.waiting.remove(seq)
                self.riders.board(seq)

    def _next_batch(self) -> list[Sequence]:
        """The next in line, as many as there are seats and KV blocks for."""
        batch: list[Sequence] = []
        blocks = self.riders.pool.total
        for seq in self.waiting.first(self.seats):
            blocks -= self.riders.pool.blocks_for(seq.most_tokens + self.config.lookahead)
            if blocks < 0:
                break
            batch.append(seq)
        return batch
