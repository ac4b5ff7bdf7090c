"""Emission: what an engine pays to tell one step, beside updating the same fields with prometheus_client.

    python benchmarks/emit.py [STEPS]

Both sides start from the same plain numbers. Farebox makes a `Step` and a `Share` for each of two tenants and hands
them to the `Recorder`, a `Sink`; prometheus_client updates 15 metrics (8 counters, 6 gauges, 1 histogram) through
children that were looked up once, which is its fastest way, and knows no tenants. The best of several rounds counts, in
CPU time of this process, both sides in one run.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from farebox.collector.recorder import Recorder
from farebox.events import Share, Step
from farebox.storage.store import create_store

ROUNDS = 9
COUNTERS = (
    "busy_ns", "idle_ns", "prefill_tokens", "decode_tokens", "output_tokens", "cached_tokens", "recomputed_tokens",
    "preemptions",
)  # fmt: skip
GAUGES = ("running", "waiting", "prefill_seqs", "decode_seqs", "kv_blocks_used", "kv_blocks_total")
BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)


def numbers(steps: int) -> Iterator[tuple[int, ...]]:
    """Plain numbers of steps: time, riders, rows, blocks."""
    for seq in range(steps):
        riders = 30 + seq % 7
        yield seq, seq * 20_000_000, 18_000_000, 2_000_000, riders, seq % 3, 2, riders - 2, 512, riders - 2, riders, 64


def farebox_way(recorder: Recorder) -> Callable[[tuple[int, ...]], None]:
    tell = recorder.step

    def emit(n: tuple[int, ...]) -> None:
        seq, at, lasted, idle, running, waiting, prefills, decodes, prompt_rows, decode_rows, output, cached = n
        half = decodes // 2
        tell(
            Step(
                "e", "r", seq, at, lasted, idle, 1, None, None, running, waiting, prefills, decodes, prompt_rows,
                decode_rows, output, cached, 0, 0, 900, 1000, 0, None, None, None, "step",
            ),
            (
                Share("e", "r", seq, at, "tenant", "chat", "standard", "decode", half, half, half, 0, 9, 9, None),
                Share("e", "r", seq, at, "tenant", "code", "standard", "prefill", prefills, prompt_rows, 2, cached, 9,
                      9, None),
            ),
        )  # fmt: skip

    return emit


def prometheus_way() -> Callable[[tuple[int, ...]], None]:
    registry = CollectorRegistry()
    add = [Counter(name, name, ["engine"], registry=registry).labels("e").inc for name in COUNTERS]
    put = [Gauge(name, name, ["engine"], registry=registry).labels("e").set for name in GAUGES]
    observe = Histogram("step_seconds", "s", ["engine"], registry=registry, buckets=BUCKETS).labels("e").observe

    def emit(n: tuple[int, ...]) -> None:
        _, _, lasted, idle, running, waiting, prefills, decodes, prompt_rows, decode_rows, output, cached = n
        for inc, more in zip(add, (lasted, idle, prompt_rows, decode_rows, output, cached, 0, 0), strict=True):
            inc(more)
        for set_to, value in zip(put, (running, waiting, prefills, decodes, 900, 1000), strict=True):
            set_to(value)
        observe(lasted / 1e9)

    return emit


def cost_us(make: Callable[[], Callable[[tuple[int, ...]], None]], rows: list[tuple[int, ...]]) -> float:
    """Microseconds of CPU time for one step, the best of several rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        emit = make()
        began = time.process_time()
        for row in rows:
            emit(row)
        best = min(best, time.process_time() - began)
    return best * 1e6 / len(rows)


def main() -> None:
    rows = list(numbers(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000))
    with tempfile.TemporaryDirectory() as folder, create_store(Path(folder) / "s") as store:
        ours = cost_us(lambda: farebox_way(Recorder(store, bulk=False)), rows)
        theirs = cost_us(prometheus_way, rows)
    print(f"farebox, one step with two cells     {ours:6.2f} µs")
    print(f"prometheus_client, 15 metrics        {theirs:6.2f} µs")
    print(f"ratio                                {ours / theirs:6.2f}   (at most 0.50)")


if __name__ == "__main__":
    main()
