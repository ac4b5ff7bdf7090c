"""How long `farebox whatif --sweep` takes on a day of traffic, and where that time goes.

    python benchmarks/whatif.py [REQUESTS] [POINTS]      (500 000 requests in 24 h, six values of max_num_seqs)

One H100 with Llama-3-8B. Prints wall time and CPU time of all processes, for reading alone and for the whole sweep.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from farebox.collector.embedded import EmbeddedEngine, record
from farebox.engine.workloads.merge import merge
from farebox.engine.workloads.traffic import Lengths, Traffic
from farebox.events import Rate
from farebox.planning.scenario import Scenario
from farebox.planning.sweep import sweep
from farebox.planning.sweep_text import mark
from farebox.planning.traffic import read_recorded
from farebox.roofline import Replica, gpu, model
from farebox.storage.store import create_store, open_store

START_NS = 1_767_225_600_000_000_000
VALUES = ("8", "16", "32", "64", "128", "256")


def make_store(path: Path, requests: int) -> None:
    per_s = requests / 86_400
    tenants = (
        Traffic(
            "chat", per_s * 0.5, Lengths(450, 0.9, 8, 6000), Lengths(220, 0.7, 1, 1500), max_tokens=1024, abandoned=0.02
        ),
        Traffic("code", per_s * 0.4, Lengths(1500, 0.7, 32, 7000), Lengths(24, 0.8, 1, 300)),
        Traffic("summariser", per_s * 0.1, Lengths(4500, 0.4, 800, 7500), Lengths(320, 0.4, 40, 1000), "batch"),
    )
    arrivals = islice(merge(*(traffic.arrivals(3, START_NS) for traffic in tenants)), requests)
    config = EmbeddedEngine(Replica(gpu("h100"), model("llama-3-8b"))).config(["benchmark"])
    with create_store(path) as store:
        store.put_rate(Rate("any", "", "USD", "4.29", None, 0, None, "example"))
        record(config, arrivals, store)
        store.compact()


def cpu_s() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    values = VALUES[-int(sys.argv[2]) :] if len(sys.argv) > 2 else VALUES
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        make_store(path, requests)
        wall, cpu = time.perf_counter(), cpu_s()
        with open_store(path) as store:
            recorded = read_recorded(store)
        print(f"read {requests:,} requests: {time.perf_counter() - wall:.1f} s, CPU {cpu_s() - cpu:.1f} s")
        found = sweep(recorded, Scenario(), "max_num_seqs", values, lambda _: None)
        print(
            f"sweep of {len(values)}: {time.perf_counter() - wall:.1f} s, CPU {cpu_s() - cpu:.1f} s, reading included"
        )
        for at, point in enumerate(found.points):
            print(
                point.value, point.busy_micro, point.total_micro, point.waits.ttft, point.preemptions, mark(found, at)
            )


if __name__ == "__main__":
    main()
