"""A trip: one step of the engine while it is under way, from `schedule` to `update_from_output`."""

from __future__ import annotations

from typing import Any

from .ride import Chunk, Ride
from .riders import Decodes, Group


class Trip:
    """Who is in a step. The thread that writes makes JSON of it; instants are on the monotonic clock."""

    preemptions = 0
    rejected = 0
    """Drafts that were thrown away."""
    expected = 0
    """How many requests should get a token."""
    step_seq = -1
    ended_ns = idle_before_ns = 0
    sampled: dict[str, int] | None = None
    """With drafts: how many tokens were sampled for each request, before any was cut off at a stop."""

    def __init__(self, scheduled: Any, started_ns: int, running: int, waiting: int, kv_blocks_used: int) -> None:
        self.scheduled: Any = scheduled
        """vLLM's SchedulerOutput until the step is over: holding it keeps its id() from being given away."""
        self.started_ns = started_ns
        self.running = running
        self.waiting = waiting
        self.kv_blocks_used = kv_blocks_used
        self.chunks: list[Chunk] = []
        self.decodes: list[Decodes] = []
        self.outputs: dict[Group, int] = {}
        """Tokens that decoders kept, of the groups in which it was not one each."""

    def over(self, before_ns: int, ended_ns: int) -> None:
        """The step ended. It began when it was scheduled or, where steps overlap, when the one before it ended."""
        started_ns = self.started_ns
        if started_ns < before_ns:
            self.started_ns = started_ns = before_ns
        self.ended_ns = ended_ns
        self.idle_before_ns = started_ns - before_ns

    def lose(self, request_id: str, ride: Ride) -> None:
        """A request ends while its rows are being computed: nobody gets their token."""
        if request_id not in self.scheduled.num_scheduled_tokens:
            return
        for chunk in self.chunks:
            if chunk.ride is ride:
                self.expected -= chunk.output
                chunk.output = 0
                return
        group = ride.group
        seqs = next((cell[1] for cell in self.decodes if cell[0] is group), 0)
        self.outputs[group] = self.outputs.get(group, seqs) - 1
        self.expected -= 1

    def count(self, outputs: dict[int, Any], rides: dict[str, Ride], left: dict[str, Ride]) -> None:
        """Count tokens request by request: with drafts, or when not everybody got the token that was expected."""
        chunks = {chunk.ride.request.request_id: chunk for chunk in self.chunks}
        for chunk in self.chunks:
            chunk.output = 0
        kept = dict.fromkeys((cell[0] for cell in self.decodes), 0)
        for each in outputs.values():
            for output in each.outputs:
                request_id, tokens = output.request_id, len(output.new_token_ids)
                if request_id in chunks:
                    chunks[request_id].output += tokens
                elif tokens:
                    kept[(rides.get(request_id) or left[request_id]).group] += tokens
        self.outputs = kept
        if self.sampled is not None:
            self._reject(self.sampled, rides)

    def _reject(self, sampled: dict[str, int], rides: dict[str, Ride]) -> None:
        """Count drafts that were thrown away; their positions count as never computed."""
        for request_id, drafts in self.scheduled.scheduled_spec_decode_tokens.items():
            tokens = sampled.get(request_id)
            rejected = len(drafts) - (tokens - 1) if tokens else 0
            if rejected:
                self.rejected += rejected
                ride = rides.get(request_id)
                if ride is not None:
                    ride.high_water -= rejected
