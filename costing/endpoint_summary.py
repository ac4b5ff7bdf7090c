"""An endpoint, or a whole fleet, in a few figures: all of its runs added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from . import run_summary
from .arrow import ints, is_one_of, where
from .run_summary import Quantiles

if TYPE_CHECKING:
    import pyarrow as pa

    from ..events import Run

STEP_COLUMNS = (*run_summary.STEP_COLUMNS, "gpus")
REQUEST_COLUMNS = run_summary.REQUEST_COLUMNS


@dataclass(frozen=True, slots=True)
class EndpointSummary:
    """Totals over runs, GPU time in GPU·ns: `wall` = `busy` (in steps) + `load` + `idle`.

    Null where there is nothing to measure. `mean_running` is the number of riders of an engine while it ran, weighted
    by step time; TTFT counts from the arrival, so time in the fleet's queue is part of it.
    """

    name: str
    engines: int
    runs: int
    wall_gpu_ns: int
    busy_gpu_ns: int
    load_gpu_ns: int
    idle_gpu_ns: int
    steps: int
    preemptions: int
    mean_running: float | None
    requests: dict[str, int]
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    ttft: Quantiles | None
    tpot: Quantiles | None

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON values."""
        return asdict(self)


def summarise_endpoint(name: str, runs: Sequence[Run], steps: pa.Table, requests: pa.Table) -> EndpointSummary:
    """Sum up `runs` from their rows, with `STEP_COLUMNS` and `REQUEST_COLUMNS`; rows of other runs are skipped."""
    steps, requests = _of(runs, steps), _of(runs, requests)
    durations = ints(steps, "duration_ns")
    wall = sum((run.wall_end_ns - run.started_ns) * run.gpus for run in runs)
    busy = int((durations * ints(steps, "gpus")).sum())
    load = sum(run.load_ns * run.gpus for run in runs)
    return EndpointSummary(
        name=name,
        engines=len({run.engine_id for run in runs}),
        runs=len(runs),
        wall_gpu_ns=wall,
        busy_gpu_ns=busy,
        load_gpu_ns=load,
        idle_gpu_ns=wall - busy - load,
        steps=steps.num_rows,
        preemptions=int(ints(steps, "preemptions").sum()),
        mean_running=float(np.average(ints(steps, "running"), weights=durations)) if busy else None,
        requests=dict(sorted(Counter(map(str, requests.column("finish_reason").to_pylist())).items())),
        prompt_tokens=int(ints(requests, "prompt_tokens").sum()),
        cached_tokens=int(ints(requests, "cached_tokens").sum()),
        output_tokens=int(ints(requests, "output_tokens").sum()),
        ttft=run_summary.ttft(requests),
        tpot=run_summary.tpot(requests),
    )


def _of(runs: Sequence[Run], table: pa.Table) -> pa.Table:
    return where(table, is_one_of(table, "run_id", [run.run_id for run in runs]))
