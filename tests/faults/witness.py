"""The engine under torture, and its witness: what it told, added up by the engine's own process and nobody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from farebox.collector.embedded import EmbeddedEngine
from farebox.engine.arrival import Arrival
from farebox.engine.config import EngineConfig
from farebox.engine.pace import Pace
from farebox.engine.pipeline import engine_of
from farebox.engine.replay import replay
from farebox.engine.workloads.synthetic import generate
from farebox.events import Request, Run, Share, Sink, Step
from farebox.roofline import Replica, gpu, model

START_NS = 1_767_311_970_000_000_000
"""2026-01-01T23:59:30Z: half a minute before midnight, so that there are two dates."""
ENGINE = EmbeddedEngine(Replica(gpu("h100"), model("llama-3-8b"), tp=2), max_num_seqs=48, engine_id="tortured")
SPEED = 12.0
"""Steps take 7 ms of the engine's time or more, so this is some 1 500 of them in a second."""


class Totals(NamedTuple):
    """Sums of what was told, all integers."""

    steps: int
    gpu_ns: int
    prefill_tokens: int
    decode_tokens: int
    output_tokens: int
    cells: int
    rows: int
    cell_tokens: int
    kv_block_ns: int
    attn: int
    requests: int
    prompt_tokens: int
    answer_tokens: int


OF_STEPS, OF_REQUESTS = slice(0, 10), slice(10, 13)


class Witness:
    """A sink that adds up what it is told, and hands it on."""

    def __init__(self, sink: Sink | None = None) -> None:
        self._sink = sink
        self.newest: Run | None = None
        self.steps: list[tuple[int, ...]] = []
        """One row per step, to be added up."""
        self.requests: list[tuple[int, ...]] = []

    def run(self, run: Run) -> None:
        self.newest = run
        if self._sink is not None:
            self._sink.run(run)

    def step(self, step: Step, cells: Sequence[Share]) -> None:
        of_step = (step.prefill_tokens, step.decode_tokens, step.output_tokens)
        of_cells = [(cell.rows, cell.output_tokens, cell.kv_block_ns, cell.attn) for cell in cells]
        self.steps.append((1, step.duration_ns * step.gpus, *of_step, len(cells), *_sums(of_cells, 4)))
        if self._sink is not None:
            self._sink.step(step, cells)

    def request(self, request: Request) -> None:
        self.requests.append((1, request.prompt_tokens or 0, request.output_tokens or 0))
        if self._sink is not None:
            self._sink.request(request)

    def totals(self, steps: int | None = None, requests: int | None = None) -> Totals:
        """Sums of the first so many steps and requests; None: of all."""
        return Totals(*_sums(self.steps[:steps], 10), *_sums(self.requests[:requests], 3))

    def totals_of(self, steps: Sequence[int], requests: int) -> Totals:
        """Sums of the steps with these numbers and of the first so many requests."""
        return Totals(*_sums([self.steps[i] for i in steps], 10), *_sums(self.requests[:requests], 3))


def _sums(rows: Sequence[tuple[int, ...]], width: int) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)] or [0] * width


def config(seed: int) -> EngineConfig:
    return ENGINE.config([str(seed)])


def arrivals(seed: int, requests: int) -> Iterator[Arrival]:
    return generate(seed, START_NS, requests)


def live(
    seed: int, requests: int, sink: Sink, pace: Pace | None = None, on_tick: Callable[[], None] | None = None
) -> Witness:
    """Let the engine serve its traffic to the end, and return what it says about it."""
    witness = Witness(sink)
    coming = list(arrivals(seed, requests))
    replay(engine_of(config(seed), witness, coming[0].arrived_ns), coming, pace, on_tick)
    return witness


class Nobody:
    """A sink that forgets."""

    def run(self, run: Run) -> None: ...
    def step(self, step: Step, cells: Sequence[Share]) -> None: ...
    def request(self, request: Request) -> None: ...
