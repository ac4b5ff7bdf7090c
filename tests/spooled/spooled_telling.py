"""A writer's life as spool events: what an engine's process tells, with everything that can be checked afterwards."""

import random
from collections import Counter
from pathlib import Path
from typing import Any

from farebox.collector.spooled.engines import Engines
from farebox.collector.spooled.source import SpoolSource
from farebox.events import LEDGER, REQUESTS, SHARES, STEPS
from farebox.storage.spool.lines import encode, segment_path, segments
from farebox.storage.spool.writer import SpoolWriter
from farebox.storage.store import create_store

START_NS = 1_767_312_000_000_000_000
MS = 1_000_000
TENANTS = ("chat", "code", "voice")


class Teller:
    """Tells the life of one run, event by event; the same for the same seed."""

    def __init__(self, engine_id="chat", run_id="r1", seed=1, gpus=2, start_ns=START_NS, **run):
        self.random = random.Random(seed)
        self.names = {"engine_id": engine_id, "run_id": run_id}
        self.start_ns = self.now_ns = start_ns
        self.gpus, self.seq, self.requests = gpus, 0, 0
        self.more = {"gpu_type": "h100", "model": "llama-3-8b", "host": "box"} | run

    def run(self, **changes: Any) -> dict[str, Any]:
        return {"run": self.names | {"started_ns": self.start_ns, "gpus": self.gpus} | self.more | changes}

    def beat(self, after_ns: int = 0) -> dict[str, Any]:
        self.now_ns += after_ns
        return {"beat": self.names | {"at_ns": self.now_ns}}

    def step(self, idle_ns: int = 0, duration_ns: int = 20 * MS) -> dict[str, Any]:
        some = self.random.sample(TENANTS, self.random.randint(1, 3))
        cells = [
            {"account": "tenant", "tenant_id": tenant, "tier": "standard", "phase": phase, "seqs": 2,
             "rows": self.random.randint(1, 40), "output_tokens": self.random.randint(0, 9), "attended": 4000}
            for tenant in some for phase in ("decode", "prefill")
        ]  # fmt: skip
        rows = Counter()
        for cell in cells:
            rows[cell["phase"]] += cell["rows"]
        step = self.names | {
            "step_seq": self.seq, "started_ns": self.now_ns + idle_ns, "duration_ns": duration_ns,
            "idle_before_ns": idle_ns, "gpus": self.gpus, "running": len(cells), "prefill_tokens": rows["prefill"],
            "decode_tokens": rows["decode"], "output_tokens": sum(cell["output_tokens"] for cell in cells),
        }  # fmt: skip
        self.seq += 1
        self.now_ns += idle_ns + duration_ns
        return {"step": step, "cells": cells}

    def request(self, **changes: Any) -> dict[str, Any]:
        self.requests += 1
        return {"request": self.names | {
            "request_id": f"q{self.requests}", "tenant_id": self.random.choice(TENANTS), "tier": "standard",
            "model": "llama-3-8b", "arrived_ns": self.now_ns - 5 * MS, "finished_ns": self.now_ns,
            "prompt_tokens": 30, "cached_tokens": 10, "output_tokens": 7, "finish_reason": "stop",
        } | changes}  # fmt: skip

    def life(self, steps: int) -> list[dict[str, Any]]:
        """A run that begins, works, idles, and does not end."""
        told = [self.run()]
        for _ in range(steps):
            told.append(self.step(idle_ns=self.random.choice((0, 0, 3 * MS))))
            if self.random.random() < 0.3:
                told.append(self.request())
            if self.random.random() < 0.1:
                told.append(self.beat(50 * MS))
        return told

    def end(self) -> dict[str, Any]:
        return self.run(ended_ns=self.now_ns)


def spool(folder: Path, events, **options) -> SpoolWriter:
    """A writer that wrote events and is gone."""
    writer = SpoolWriter(folder, flush_s=60, **options)
    for event in events:
        writer.put(event)
    writer.close()
    return writer


def append_lines(folder: Path, events) -> None:
    """Events as a writer appends them, without one that lives."""
    folder.mkdir(exist_ok=True)
    with segment_path(folder, max(segments(folder), default=0)).open("ab") as file:
        file.writelines(map(encode, events))


class Collector:
    """A store and the spools under it; `look` is one turn."""

    def __init__(self, path: Path, scraped=()):
        self.store = create_store(path)
        self.engines = Engines(scraped)
        self.root = path / "spool"
        self.source = SpoolSource(self.store, self.root, self.engines)

    def look(self, turns: int = 1):
        for _ in range(turns):
            found = self.source.look()
        return found

    def ledger(self, *keys: str) -> Counter:
        sums = Counter()
        for line in LEDGER.from_arrow(self.store.read(LEDGER)):
            sums[tuple(getattr(line, key) for key in keys)] += line.gpu_ns
        return +sums

    def steps(self) -> list[Any]:
        return sorted(STEPS.from_arrow(self.store.read(STEPS)), key=lambda step: step[:3])

    def shares(self) -> list[Any]:
        return SHARES.from_arrow(self.store.read(SHARES))

    def requests(self) -> list[Any]:
        return sorted(REQUESTS.from_arrow(self.store.read(REQUESTS)), key=lambda one: one.request_id)

    def walls(self) -> int:
        return sum((run.wall_end_ns - run.started_ns) * run.gpus for run in self.store.runs())

    def aside(self, writer: str) -> list[str]:
        path = self.store.path / "aside" / f"{writer}.jsonl"
        return path.read_text().splitlines() if path.exists() else []
