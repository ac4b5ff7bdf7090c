"""A recorded run through the embedded engine: the same arrivals, with the step model's times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..engine.arrival import Arrival
from ..engine.config import EngineConfig
from ..engine.lock_step import LockStep
from ..engine.pipeline import PipelinedEngine, engine_of
from ..errors import InputError
from ..events import Request, Run, Share, Step


class Served(NamedTuple):
    """When the engine did what `RecordedRequest` tells of the recorded one, UTC nanoseconds."""

    queued_ns: int
    scheduled_ns: int
    first_token_ns: int
    last_token_ns: int

    @property
    def ttft_ns(self) -> int:
        """From the queue to the first token."""
        return self.first_token_ns - self.queued_ns


@dataclass(frozen=True)
class StepLog:
    """The steps of a replay in columns (int64[steps]); attention in clock units."""

    started_ns: NDArray[np.int64]
    ended_ns: NDArray[np.int64]
    rows: NDArray[np.int64]
    running: NDArray[np.int64]
    decode_attn: NDArray[np.int64]
    prompt_attn: NDArray[np.int64]
    """Attention of prompts, of recomputations too, without `StepModel.prompt`."""
    prompts: NDArray[np.int64]
    """1 where a piece of a prompt was on board."""


@dataclass(frozen=True)
class Replayed:
    """What the engine did with a recorded run: one entry per request in order of arrival, and its steps."""

    served: tuple[Served, ...]
    steps: StepLog
    preemptions: int

    @property
    def makespan_ns(self) -> int:
        """From the first arrival (when the engine wakes) to the last token."""
        return max(one.last_token_ns for one in self.served) - int(self.steps.started_ns[0])


def replay_recorded(config: EngineConfig, arrivals: Sequence[Arrival], ranks: int = 1) -> Replayed:
    """Serve `arrivals`, in order of arrival, to their end by one engine or by data-parallel `ranks` in lock step.

    Raises:
        InputError: a request that can never fit into this engine's KV cache.
    """
    notes = _Notes(config)
    start_ns = arrivals[0].arrived_ns
    if ranks == 1:
        engine = engine_of(config, notes, start_ns)
    else:
        engine = LockStep([PipelinedEngine(config, notes, start_ns) for _ in range(ranks)])
    queued: list[int] = []
    while True:
        while len(queued) < len(arrivals) and arrivals[len(queued)].arrived_ns <= engine.now_ns:
            engine.add(arrivals[len(queued)])
            queued.append(engine.now_ns)
        if engine.step():
            continue
        if len(queued) == len(arrivals):
            break
        engine.idle_until(arrivals[len(queued)].arrived_ns)
    return Replayed(
        served=tuple(
            notes.served(arrival.request_id, queued_ns) for arrival, queued_ns in zip(arrivals, queued, strict=True)
        ),
        steps=notes.log(),
        preemptions=notes.preemptions,
    )


class _Notes:
    """A sink that keeps what the fit asks for."""

    def __init__(self, config: EngineConfig) -> None:
        self.preemptions = 0
        self._model = config.step_model
        self._requests: dict[str, Request] = {}
        self._steps: dict[int, tuple[int, ...]] = {}
        """By their ends: of the ranks' steps that end together, the one that took longest, and who rode in all."""

    def run(self, run: Run) -> None:
        """The run itself tells nothing that was not known."""

    def step(self, step: Step, cells: Sequence[Share]) -> None:
        decode_attn = sum(cell.attn for cell in cells if cell.phase == "decode")
        attn = sum(cell.attn for cell in cells)
        prompts = int(step.prefill_tokens > 0)
        rows = step.prefill_tokens + step.decode_tokens
        prompt_attn = attn - decode_attn - prompts * self._model.prompt
        units, running = self._model.step(rows, attn), step.running
        self.preemptions += step.preemptions
        if (other := self._steps.get(step.ended_ns)) is not None:
            running += other[3]
            if other[-1] >= units:
                self._steps[step.ended_ns] = (*other[:3], running, *other[4:])
                return
        self._steps[step.ended_ns] = (
            step.started_ns, step.ended_ns, rows, running, decode_attn, prompt_attn, prompts, units
        )  # fmt: skip

    def request(self, request: Request) -> None:
        self._requests[request.request_id] = request

    def served(self, request_id: str, queued_ns: int) -> Served:
        request = self._requests[request_id]
        if request.scheduled_ns is None or request.first_token_ns is None:
            raise InputError(
                f"request {request_id} cannot be replayed: {request.prompt_tokens} tokens and an answer do not fit "
                "into the KV cache; say in the engine arguments how many KV blocks there were (num_gpu_blocks)"
            )
        return Served(queued_ns, request.scheduled_ns, request.first_token_ns, request.finished_ns)

    def log(self) -> StepLog:
        return StepLog(*np.array([step[:-1] for step in self._steps.values()], dtype=np.int64).reshape(-1, 7).T)
