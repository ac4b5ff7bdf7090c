"""How many requests per CPU-second the engines serve, beyond their start-up, and what others reach on the same trace.

    python benchmarks/engine.py TRACE             (as for `farebox run`, e.g. azure:AzureLLMInferenceTrace_conv.csv)
    python benchmarks/engine.py --growth          (10 k to 1 M made-up requests into an archive: time and memory)

Every figure is a process of its own: its CPU time, less that of the same process with a single request. One H100 with
Llama-3-8B, 256 sequences, 8192 rows. Peers run where they are installed; PEER_PYTHON names their interpreter.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from farebox.cli.trace import parse_traces
from farebox.cli.traffic import traffic
from farebox.collector.embedded import EmbeddedEngine, record
from farebox.collector.recorder import Recorder
from farebox.engine.arrival import Arrival
from farebox.engine.config import EngineConfig
from farebox.engine.engine import Engine
from farebox.engine.jump.caching import jump_engine
from farebox.engine.jump.spell import Speller
from farebox.engine.replay import replay
from farebox.engine.workloads import synthetic
from farebox.roofline import Replica, gpu, model
from farebox.storage.store import Store, create_store

START_NS = 1_767_225_600_000_000_000
GROWTH = (10_000, 30_000, 100_000, 300_000, 1_000_000)
DYNAMO = """
import json, sys
from dynamo._core import run_mocker_trace_replay
run_mocker_trace_replay([sys.argv[1]], extra_engine_args=json.loads(sys.argv[2]), num_workers=1, replay_mode="offline")
"""
PEER = os.environ.get("PEER_PYTHON", sys.executable)


class Nowhere:
    """A sink that forgets what it is told."""

    def run(self, run: Any) -> None: ...
    def step(self, step: Any, cells: Any) -> None: ...
    def request(self, request: Any) -> None: ...


class NowhereInLeaps(Nowhere):
    def decodes(self, run: Any) -> None: ...


class OneByOne:
    """A recorder that takes no leaps."""

    def __init__(self, recorder: Recorder) -> None:
        self.run, self.step, self.request = recorder.run, recorder.step, recorder.request


def step(config: EngineConfig, first: Arrival, rest: Iterable[Arrival], store: Store) -> None:
    replay(Engine(config, Nowhere(), first.arrived_ns), chain([first], rest))


def leap(config: EngineConfig, first: Arrival, rest: Iterable[Arrival], store: Store) -> None:
    replay(Engine(config, NowhereInLeaps(), first.arrived_ns), chain([first], rest))


def jump(config: EngineConfig, first: Arrival, rest: Iterable[Arrival], store: Store) -> None:
    engine = jump_engine(config, first, rest)
    speller = Speller(config, engine.inflow)
    while (segment := engine.segment(65_536)) is not None:
        speller.spell(segment)


def step_archive(config: EngineConfig, first: Arrival, rest: Iterable[Arrival], store: Store) -> None:
    with store.archiving(config.engine_id, config.run_id) as stream:
        recorder = Recorder(store, bulk=True, stream=stream)
        engine = Engine(config, OneByOne(recorder), first.arrived_ns)
        replay(engine, chain([first], rest), None, recorder.flush_if_due)
        recorder.flush()


def leap_archive(config: EngineConfig, first: Arrival, rest: Iterable[Arrival], store: Store) -> None:
    with store.archiving(config.engine_id, config.run_id) as stream:
        recorder = Recorder(store, bulk=True, stream=stream)
        replay(Engine(config, recorder, first.arrived_ns), chain([first], rest), None, recorder.flush_if_due)
        recorder.flush()


def jump_archive(config: EngineConfig, first: Arrival, rest: Iterable[Arrival], store: Store) -> None:
    record(config, chain([first], rest), store)


WAYS: dict[str, tuple[str, Callable[..., None]]] = {
    "step": ("step by step", step),
    "leap": ("leaping", leap),
    "jump": ("jumping, every column", jump),
    "step_archive": ("step by step, to the archive", step_archive),
    "leap_archive": ("leaping, to the archive", leap_archive),
    "jump_archive": ("`farebox run --speed max`, to the archive", jump_archive),
}


def serve(way: str, trace: str, limit: int) -> None:
    """The measured process."""
    traces = parse_traces(trace)
    has_ids = any(t.has_prefix_ids for t in traces)
    engine = EmbeddedEngine(Replica(gpu("h100"), model("llama-3-8b")), enable_prefix_caching=has_ids)
    if traces[0].kind == "synthetic" and limit > 1:
        arrivals: Iterator[Arrival] = synthetic.generate(0, START_NS, limit)
    else:
        arrivals = islice(traffic(traces, START_NS, 1, None), limit)  # pyright: ignore[reportArgumentType]
    with tempfile.TemporaryDirectory() as folder, create_store(Path(folder) / "store") as store:
        WAYS[way][1](engine.config([trace]), next(arrivals), arrivals, store)


def used(command: list[str]) -> tuple[float, int]:
    """CPU seconds of a process and its peak memory in bytes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, after.ru_maxrss * 1024


def own(way: str, trace: str, limit: int) -> tuple[float, int]:
    return used([sys.executable, __file__, "--serve", way, trace, str(limit)])


def dynamo(requests: list[Arrival], folder: Path) -> float | None:
    """CPU seconds of NVIDIA's Rust replay beyond its start-up; None: it is not installed."""

    def seconds(some: list[Arrival]) -> float:
        path = folder / "trace.jsonl"
        path.write_text("".join(_mooncake_line(number, arrival) for number, arrival in enumerate(some)))
        limits = {"backend": "vllm", "block_size": 512, "num_gpu_blocks": 840}
        limits |= {"max_num_seqs": 256, "max_num_batched_tokens": 8192}
        return used([PEER, "-c", DYNAMO, str(path), json.dumps({"engine": limits})])[0]

    if subprocess.run([PEER, "-c", "import dynamo._core"], check=False, capture_output=True).returncode:
        return None
    return seconds(requests) - seconds(requests[:1])


def _mooncake_line(number: int, arrival: Arrival) -> str:
    blocks = -(-arrival.prompt_tokens // 512)
    ids = arrival.prefix_ids or range(number * 1_000, number * 1_000 + blocks)
    line = {
        "timestamp": (arrival.arrived_ns - START_NS) // 1_000_000
        if arrival.prefix_ids
        else arrival.arrived_ns // 10**6,
        "input_length": arrival.prompt_tokens,
        "output_length": max(1, arrival.output_tokens),
        "hash_ids": list(ids),
    }
    return json.dumps(line) + "\n"


def vidur(requests: list[Arrival], folder: Path) -> float | None:
    """CPU seconds of Vidur beyond its start-up; None: it is not installed."""

    def seconds(some: list[Arrival]) -> float:
        path = folder / "trace.csv"
        rows = (
            f"{(a.arrived_ns - some[0].arrived_ns) / 1e9},{a.prompt_tokens},{max(1, a.output_tokens)}" for a in some
        )
        path.write_text("\n".join(["arrived_at,num_prefill_tokens,num_decode_tokens", *rows]) + "\n")
        options = {
            "replica_config_device": "h100",
            "replica_config_model_name": "meta-llama/Meta-Llama-3-8B",
            "request_generator_config_type": "trace_replay",
            "trace_request_generator_config_trace_file": str(path),
            "replica_scheduler_config_type": "vllm_v1",
            "metrics_config_output_dir": str(folder),
        }
        flags = chain.from_iterable((f"--{name}", value) for name, value in options.items())
        return used([PEER, "-m", "vidur.main", *flags])[0]

    if subprocess.run([PEER, "-c", "import vidur.main"], check=False, capture_output=True).returncode:
        return None
    return seconds(requests) - seconds(requests[:1])


def compare(trace: str) -> None:
    requests = list(traffic(parse_traces(trace), START_NS, 1, None))  # pyright: ignore[reportArgumentType]
    print("| engine | requests per CPU-second | CPU-seconds |\n|---|---|---|")
    for way, (name, _) in WAYS.items():
        seconds = own(way, trace, len(requests))[0] - own(way, trace, 1)[0]
        print(f"| Farebox, {name} | {len(requests) / seconds:,.0f} | {seconds:.2f} |", flush=True)
    for name, peer in (("NVIDIA dynamo.replay", dynamo), ("Vidur", vidur)):
        with tempfile.TemporaryDirectory() as folder:
            seconds = peer(requests, Path(folder))
        figures = "not installed | –" if seconds is None else f"{len(requests) / seconds:,.0f} | {seconds:.2f}"
        print(f"| {name} | {figures} |", flush=True)


def made(count: int) -> float:
    return used([sys.executable, __file__, "--make", str(count)])[0]


def grow() -> None:
    """Made-up requests only: their making is measured apart and taken off."""
    print("| requests | µs per request | peak memory, MiB |\n|---|---|---|")
    start = own("jump_archive", "synthetic", 1)[0]
    for count in GROWTH:
        seconds, memory = own("jump_archive", "synthetic", count)
        making = (
            used([sys.executable, __file__, "--make", str(count)])[0]
            - used([sys.executable, __file__, "--make", "1"])[0]
        )
        print(f"| {count:,} | {(seconds - start - making) / count * 1e6:.1f} | {memory / 2**20:.0f} |", flush=True)


def main() -> None:
    match sys.argv[1:]:
        case ["--serve", way, trace, limit]:
            serve(way, trace, int(limit))
        case ["--make", count]:
            sum(1 for _ in synthetic.generate(0, START_NS, int(count)))
        case ["--growth"]:
            grow()
        case [trace]:
            compare(trace)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
