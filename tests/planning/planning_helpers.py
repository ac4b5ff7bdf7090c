"""Stores that the embedded engine recorded."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

from farebox.collector.embedded import EmbeddedEngine, record
from farebox.engine.arrival import Arrival
from farebox.engine.config import EngineConfig
from farebox.engine.workloads import demo, synthetic
from farebox.events import Rate
from farebox.planning.traffic import Recorded, read_recorded
from farebox.roofline import Replica, gpu, model
from farebox.storage.store import create_store, open_store

START_NS = 1_767_225_600_000_000_000
RATE = Rate("any", "", "USD", "4.29", None, 0, None, "test")


def traffic(count: int = 150, seed: int = 4, *, tiers: bool = False) -> list[Arrival]:
    """Made-up traffic: three tenants, or with `tiers` four of all tiers, some of whom hang up."""
    return list(islice(demo.generate(START_NS, seed), count) if tiers else synthetic.generate(seed, START_NS, count))


def config(**options: object) -> EngineConfig:
    """An engine of Llama-3-8B on one H100; `kv_blocks` may be set by hand."""
    blocks, weights = options.pop("kv_blocks", None), str(options.pop("weights", "bf16"))
    made = EmbeddedEngine(Replica(gpu("h100"), model("llama-3-8b"), weights), **options).config(["test"])  # pyright: ignore[reportArgumentType]
    return made if blocks is None else replace(made, kv_blocks=blocks)


def record_into(path: Path, engine: EngineConfig, asked: list[Arrival], *rates: Rate) -> Path:
    """A store of one run."""
    with create_store(path) as store:
        for rate in rates or (RATE,):
            store.put_rate(rate)
        record(engine, asked, store)
    return path


def recorded_in(path: Path) -> Recorded:
    """What a store holds."""
    with open_store(path) as store:
        return read_recorded(store)


FLEET = """
[[endpoint]]
name = "chat"
gpu = "h100"
model = "llama-3-8b"
replicas = 2
hours = "00:00-00:01, 00:02-00:10"
load_seconds = 5

[[endpoint]]
name = "night"
gpu = "l40s"
model = "llama-3-8b"
weights = "fp8"

[[route]]
tier = "batch"
endpoint = "night"
"""
