"""The demo: four made-up tenants on one embedded engine."""

from __future__ import annotations

import signal
import time
from itertools import takewhile
from pathlib import Path

from ..engine.pace import Pace
from ..engine.workloads import demo
from ..events import Rate
from ..roofline import Replica, gpu, model
from ..storage.store import create_store
from .embedded import EmbeddedEngine, record

RATE = "4.29"
SEATS = 64
FAST_CAP = 8


def record_demo(place: Path, lead_s: int, *, paced: bool) -> None:
    """Record the demo into `place`, from `lead_s` seconds ago until now or, when `paced`, until it is stopped.

    The lead is simulated at once, so that a screen has something to show when it opens.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with create_store(place) as store:
        now_ns = time.time_ns()
        last_ns = max((run.wall_end_ns for run in store.runs()), default=0)
        start_ns = max(now_ns - lead_s * 10**9, last_ns)
        engine = EmbeddedEngine(
            Replica(gpu("h100"), model("llama-3-8b")), max_num_seqs=SEATS, fast_cap=FAST_CAP, engine_id="demo"
        )
        store.put_rate(Rate("any", "", "USD", RATE, None, 0, None, "example"))
        arrivals = demo.generate(start_ns)
        if paced:
            pace = Pace(lead_ns=now_ns - start_ns)
            record(engine.config([f"demo:{start_ns}"]), arrivals, store, pace=pace)
        else:
            until_now = takewhile(lambda arrival: arrival.arrived_ns < now_ns, arrivals)
            record(engine.config([f"demo:{start_ns}"]), until_now, store)
            store.compact()
