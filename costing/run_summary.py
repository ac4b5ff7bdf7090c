"""A run in a few figures: what rode, how full it was, how long people waited."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .arrow import coded, ints, where

if TYPE_CHECKING:
    import pyarrow as pa

    from ..events import Run
    from .segments import Ints

STEP_COLUMNS = ("run_id", "duration_ns", "idle_before_ns", "running", "prefill_ns", "output_tokens", "preemptions")
REQUEST_COLUMNS = (
    "run_id",
    "arrived_ns",
    "first_token_ns",
    "finished_ns",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "finish_reason",
)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Median and 99th percentile in nanoseconds."""

    p50_ns: int
    p99_ns: int


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Totals of one run. Null where there is nothing to measure (no step, no token).

    `busy_ns` is the time in steps; `idle_ns` the wall time without one; `mean_running` and `occupancy` (against
    `max_num_seqs`) are weighted by step time. TTFT is first token − arrival; TPOT the mean gap of a request's further
    tokens.
    """

    engine_id: str
    run_id: str
    mode: str
    gpu_type: str
    gpus: int
    model: str
    max_num_seqs: int | None
    wall_ns: int
    busy_ns: int
    idle_ns: int
    prefill_ns: int
    steps: int
    preemptions: int
    mean_running: float | None
    occupancy: float | None
    requests: dict[str, int]
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    gpu_ns_per_1k_output: int | None
    ttft: Quantiles | None
    tpot: Quantiles | None

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON values."""
        return asdict(self)


def summarise(run: Run, steps: pa.Table, requests: pa.Table) -> RunSummary:
    """Sum up `run` from rows with `STEP_COLUMNS` and `REQUEST_COLUMNS`; rows of other runs are skipped."""
    steps, requests = _of(run, steps), _of(run, requests)
    durations, running = ints(steps, "duration_ns"), ints(steps, "running")
    busy, outputs = int(durations.sum()), int(ints(requests, "output_tokens").sum())
    mean_running = float(np.average(running, weights=durations)) if busy else None
    wall = run.wall_end_ns - run.started_ns
    return RunSummary(
        engine_id=run.engine_id,
        run_id=run.run_id,
        mode=run.mode,
        gpu_type=run.gpu_type,
        gpus=run.gpus,
        model=run.model,
        max_num_seqs=run.max_num_seqs,
        wall_ns=wall,
        busy_ns=busy,
        idle_ns=wall - busy - run.load_ns,
        prefill_ns=int(ints(steps, "prefill_ns").sum()),
        steps=steps.num_rows,
        preemptions=int(ints(steps, "preemptions").sum()),
        mean_running=mean_running,
        occupancy=mean_running / run.max_num_seqs if mean_running is not None and run.max_num_seqs else None,
        requests=_by_reason(requests),
        prompt_tokens=int(ints(requests, "prompt_tokens").sum()),
        cached_tokens=int(ints(requests, "cached_tokens").sum()),
        output_tokens=outputs,
        gpu_ns_per_1k_output=busy * run.gpus * 1000 // outputs if outputs else None,
        ttft=ttft(requests),
        tpot=tpot(requests),
    )


def _of(run: Run, table: pa.Table) -> pa.Table:
    codes, runs = coded(table, "run_id")
    return table if set(runs) <= {run.run_id} else where(table, np.array([r == run.run_id for r in runs])[codes])


def _by_reason(requests: pa.Table) -> dict[str, int]:
    codes, reasons = coded(requests, "finish_reason")
    counts = np.bincount(codes, minlength=len(reasons)).tolist()
    return {reason: count for reason, count in sorted(zip(reasons, counts, strict=True)) if count}


def ttft(requests: pa.Table) -> Quantiles | None:
    """Time from arrival to first token, of those that got one."""
    answered = requests.filter(requests.column("first_token_ns").is_valid())
    return _quantiles(ints(answered, "first_token_ns") - ints(answered, "arrived_ns"))


def tpot(requests: pa.Table) -> Quantiles | None:
    """Mean gap between a request's tokens, of those that got two."""
    longer = where(requests, ints(requests, "output_tokens") > 1)
    span = ints(longer, "finished_ns") - ints(longer, "first_token_ns")
    return _quantiles(span // (ints(longer, "output_tokens") - 1))


def _quantiles(values: Ints) -> Quantiles | None:
    if not values.size:
        return None
    p50, p99 = np.quantile(values, [0.5, 0.99], method="inverted_cdf")
    return Quantiles(int(p50), int(p99))
