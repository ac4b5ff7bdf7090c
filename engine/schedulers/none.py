"""No batching: one request at a time."""

from __future__ import annotations

from .scheduler import Schedule, Scheduler


class NoBatchScheduler(Scheduler):
    """Serves the next in line from its first row to its last token, alone."""

    def schedule(self, now_ns: int) -> Schedule:
        """See `Scheduler`."""
        if not self.riders.running and (seq := self.waiting.head) is not None:
            self.waiting.remove(seq)
            self.riders.board(seq)
        self.riders.allocate_decodes()
        return Schedule(self.prefill(self.token_budget))
