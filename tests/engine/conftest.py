"""A tape that keeps what an engine tells, a small step model, and workloads for small engines."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from hypothesis import strategies as st

from farebox.engine.arrival import Arrival
from farebox.engine.config import EngineConfig
from farebox.engine.engine import Engine
from farebox.engine.replay import replay
from farebox.engine.speculation import Speculation
from farebox.events import Request, Run, Share, Step
from farebox.roofline.step_model import UNITS_PER_NS, StepModel

sys.path.insert(0, str(Path(__file__).parent))

from engine_reference import ReferenceEngine

START_NS = 1_700_000_000_000_000_000
MODEL = StepModel(
    overhead=350_000 * UNITS_PER_NS + 12_345,
    weights=5_600_000 * UNITS_PER_NS + 77,
    row=23_000 * UNITS_PER_NS + 999,
    row_comm=501,
    kv_token=46_031_117,
    attn_pair=795_001,
    weight_bytes=16_000_000_000,
    kv_token_bytes=131_072,
    flops_row=16_000_000_000,
    flops_pair=524_288,
)

DRAFT = StepModel(
    overhead=50_000 * UNITS_PER_NS + 3,
    weights=400_000 * UNITS_PER_NS + 11,
    row=1_500 * UNITS_PER_NS + 7,
    row_comm=5,
    kv_token=3_031_117,
    attn_pair=95_001,
    weight_bytes=1_000_000_000,
    kv_token_bytes=8_192,
    flops_row=1_000_000_000,
    flops_pair=32_768,
)


class Tape:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.steps: list[Step] = []
        self.cells: list[list[Share]] = []
        self.requests: list[Request] = []

    def run(self, run: Run) -> None:
        self.runs.append(run)

    def step(self, step: Step, cells) -> None:
        self.steps.append(step)
        self.cells.append(list(cells))

    def request(self, request: Request) -> None:
        self.requests.append(request)

    @property
    def events(self):
        return self.steps, self.cells, self.requests


def config_of(**changes) -> EngineConfig:
    small = {
        "engine_id": "e", "run_id": "r", "host": "h", "gpu_type": "H100", "gpus": 1, "model": "m", "weights": "bf16",
        "kv_blocks": 65, "block_bytes": 2_097_152, "step_model": MODEL, "max_num_seqs": 8, "max_num_batched_tokens": 64,
    }  # fmt: skip
    return EngineConfig(**(small | changes))


def arrival_of(number: int, at_ms: int = 0, prompt: int = 20, output: int = 5, **changes) -> Arrival:
    tenant = changes.pop("tenant", "a")
    tier = changes.pop("tier", "standard")
    return Arrival(f"{tenant}-{number}", tenant, tier, START_NS + at_ms * 1_000_000, prompt, output, **changes)


def serve(config: EngineConfig, arrivals: list[Arrival], engine_class=Engine, **options) -> Tape:
    tape = Tape()
    replay(engine_class(config, tape, arrivals[0].arrived_ns if arrivals else START_NS), arrivals, **options)
    return tape


class CheckedEngine(Engine):
    """Recounts its books before and after every step."""

    def step(self) -> bool:
        self.check_integrity()
        stepped = super().step()
        self.check_integrity()
        return stepped


@st.composite
def workloads(draw, aborts: bool = True) -> list[Arrival]:
    """Up to forty requests within a fraction of a second: crowded enough for small caches, many prompts begin alike."""
    count, rng = draw(st.integers(1, 40)), Random(draw(st.integers(0, 2**32 - 1)))
    at_ns, arrivals = START_NS, []
    for number in range(count):
        at_ns += rng.choice([0, 0, 1, 333_333, 7_000_001, 90_000_000])
        turns = [rng.choice("0001") for _ in range(rng.randint(0, 10))]
        ids = tuple(int("1" + "".join(turns[: end + 1]), 2) for end in range(len(turns)))
        arrivals.append(
            Arrival(
                f"{number:02d}",
                rng.choice("abc"),
                rng.choice(["fast", "standard", "standard", "batch"]),
                at_ns,
                rng.randint(1, 150),
                rng.randint(0, 60),
                rng.choice([None, rng.randint(0, 70)]),
                rng.choice([None, ids, ids, ids]),
                at_ns + rng.randint(0, 300_000_000) if aborts and rng.random() < 0.3 else None,
                rng.choice([None, None, 0, -3, 5]),
            )
        )
    return arrivals


def speculations() -> st.SearchStrategy[Speculation]:
    rates = st.sampled_from([0, 300_000, 800_000, 1_000_000])
    return st.builds(Speculation, st.integers(1, 5), rates, st.integers(0, 3), st.sampled_from([None, DRAFT]))


@st.composite
def configs(draw) -> EngineConfig:
    mode = draw(st.sampled_from(["continuous", "continuous", "continuous", "static", "none"]))
    block_size = draw(st.sampled_from([1, 4, 16]))
    return config_of(
        mode=mode,
        speculation=draw(st.none() | speculations()),
        scheduling_policy=draw(st.sampled_from(["fcfs", "fcfs", "priority"])),
        enable_prefix_caching=draw(st.booleans()),
        prefix_block_tokens=block_size * draw(st.sampled_from([1, 1, 3, 8])),
        gpus=draw(st.sampled_from([1, 2])),
        kv_blocks=1 + draw(st.integers(1, 60)) * draw(st.sampled_from([1, 16 // block_size])),
        block_size=block_size,
        max_num_seqs=draw(st.integers(1, 12)),
        max_num_batched_tokens=draw(st.integers(1, 120)),
        batch_wait_ms=draw(st.sampled_from([0, 5, 50])),
        fast_cap=draw(st.one_of(st.none(), st.integers(1, 4))) if mode == "continuous" else None,
    )


@dataclass(frozen=True)
class Kit:
    """What the tests of this folder share."""

    tape = Tape
    config = staticmethod(config_of)
    arrival = staticmethod(arrival_of)
    serve = staticmethod(serve)
    checked = CheckedEngine
    reference = ReferenceEngine
    start_ns = START_NS
    model = MODEL
    draft = DRAFT


@pytest.fixture(scope="session")
def kit() -> Kit:
    return Kit()


@pytest.fixture(scope="session")
def some_workloads():
    return workloads


@pytest.fixture(scope="session")
def some_configs():
    return configs
