"""A small recorded run: our own engine with known constants, written as a real vLLM's run is recorded."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from farebox.calibration.replayed import Replayed, replay_recorded
from farebox.engine.arrival import Arrival
from farebox.engine.config import EngineConfig
from farebox.roofline import Replica, gpu, model
from farebox.roofline.scales import Scales

START_NS = 1_787_267_980_000_000_000
MONOTONIC_NS = START_NS - 27_536_000_000_000
"""The recording's own clock began then."""
SCALES = Scales(overhead=1.4, weights=1.08, row=1.2, row_comm=1.0, kv=1.15, attention=1.3, prompt_us=180.0)
COLD_NS = 350_000_000
REPLICA = Replica(gpu("rtx_4090"), model("llama-3.1-8b"))
ARGS = {
    "engine_kwargs": {
        "model": "meta-llama/Llama-3.1-8B",
        "tensor_parallel_size": 1,
        "max_num_seqs": 24,
        "max_num_batched_tokens": 1024,
        "dtype": "bfloat16",
    },
    "kv_cache": {"num_gpu_blocks": 700, "block_size": 16, "enable_prefix_caching": True},
    "hardware": {"device_name": "NVIDIA GeForce RTX 4090"},
}


def config_of(**changes) -> EngineConfig:
    plain = EngineConfig(
        engine_id="e", run_id="r", host="h", gpu_type="rtx_4090", gpus=1, model="m", weights="bf16", kv_blocks=700,
        block_bytes=1, step_model=SCALES.apply(REPLICA.step_model(), 32), max_num_seqs=24, max_num_batched_tokens=1024,
        async_scheduling=True, cold_start_ns=COLD_NS,
    )  # fmt: skip
    return replace(plain, **changes)


def traffic(count: int = 80) -> list[Arrival]:
    """More than one GPU serves at once, so that a queue forms, and drains."""
    chance, at_ns = random.Random(4), START_NS
    arrivals = []
    for number in range(count):
        prompt, output = chance.randint(50, 900), chance.randint(20, 110)
        arrivals.append(Arrival(f"bench-{number}", "recorded", "standard", at_ns, prompt, output))
        at_ns += chance.randint(1, 180_000_000)
    return arrivals


@dataclass(frozen=True)
class RecordedFolder:
    """Where the run lies, and what really happened."""

    folder: Path
    arrivals: list[Arrival]
    truth: Replayed


def write_run(folder: Path) -> RecordedFolder:
    arrivals = traffic()
    truth = replay_recorded(config_of(), arrivals)
    with (folder / "requests.jsonl").open("w") as lines:
        for arrival, served in zip(arrivals, truth.served, strict=True):
            stamps = {
                "queued_ts": served.queued_ns,
                "scheduled_ts": served.scheduled_ns,
                "first_token_ts": served.first_token_ns,
                "last_token_ts": served.last_token_ns,
            }
            row = {
                "request_id": arrival.request_id,
                "input_toks": arrival.prompt_tokens,
                "output_toks": arrival.output_tokens,
                "arrival_time": arrival.arrived_ns / 1e9,
            }
            row |= {name: (at_ns - MONOTONIC_NS) / 1e9 for name, at_ns in stamps.items()}
            lines.write(json.dumps(row) + "\n")
    (folder / "meta.json").write_text(json.dumps(ARGS))
    steps, ticks = truth.steps, ["t,prompt_throughput,gen_throughput,running,waiting,kv_cache_pct"]
    for second in range(1, int((steps.ended_ns[-1] - START_NS) // 10**9) + 1):
        latest = (steps.started_ns <= START_NS + second * 10**9).sum() - 1
        ticks.append(f"{second}.0,0,0,{steps.running[latest]},0,0")
    (folder / "timeseries.csv").write_text("\n".join(ticks) + "\n")
    return RecordedFolder(folder, arrivals, truth)


@dataclass(frozen=True)
class Kit:
    """What the tests of this folder share."""

    replica = REPLICA
    scales = SCALES
    cold_ns = COLD_NS
    start_ns = START_NS
    args = ARGS
    config = staticmethod(config_of)


@pytest.fixture(scope="session")
def kit() -> Kit:
    return Kit()


@pytest.fixture(scope="session")
def recorded_run(tmp_path_factory) -> RecordedFolder:
    return write_run(tmp_path_factory.mktemp("recorded"))
