"""The scheduler's contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from ..config import EngineConfig
from ..riders import Chunk, Riders
from ..waiting import WaitingQueue


class Schedule(NamedTuple):
    """What the next step computes: one row of every decoder, and these chunks."""

    chunks: list[Chunk]
    preemptions: int = 0
    held_by: str | None = None


class Steady(NamedTuple):
    """Nothing but decoding happens until somebody gets off, or more than `spare_blocks` KV blocks are taken."""

    spare_blocks: int
    held_by: str | None = None


class Scheduler(ABC):
    """Decides before each step who boards, who is put off, and how many rows everybody gets."""

    def __init__(self, config: EngineConfig, waiting: WaitingQueue, riders: Riders) -> None:
        self.config = config
        self.waiting = waiting
        self.riders = riders
        self.seats = config.seats
        self.token_budget = config.max_num_batched_tokens

    @abstractmethod
    def schedule(self, now_ns: int) -> Schedule:
        """Change the queue and the riders for the step that starts now, and allocate its KV blocks."""

    def steady(self) -> Steady | None:
        """Whether the coming steps are alike: everybody on board decodes, and nobody boards until somebody gets off."""
        if not self.riders or self.riders.prefilling:
            return None
        return Steady(self.riders.pool.free)

    def prefill(self, budget: int) -> list[Chunk]:
        """Schedule the next chunks of all who prefill, in boarding order, until `budget` rows are given out."""
        chunks: list[Chunk] = []
        prefilling = self.riders.prefilling
        for behind, seq in zip(range(len(prefilling))[::-1], prefilling, strict=True):
            if not budget:
                break
            chunks.append(self.riders.prefill(seq, budget, behind))
            budget -= chunks[-1].rows
        return chunks

    def wakes_ns(self) -> int | None:
        """When an engine that nobody rides will board somebody without a further arrival; None: never."""
        return None
