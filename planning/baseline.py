"""The baseline's own error: recorded time lived once more as it was, against what the store recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..costing import arrow
from ..events import LEDGER, MINUTE_NS, REQUESTS, STEPS
from ..roofline.constants import UNCALIBRATED
from ..roofline.errors import SpecError
from .asked import arrived_in, in_window, with_lengths
from .configuration import recorded_replica
from .errors import PlanError
from .outcome import Outcome
from .tally import KEPT, Lived, Steps, kept, one_ledger, steps_of
from .traffic import Recorded, RecordedRun
from .words import moved_text

if TYPE_CHECKING:
    from ..storage.store import Store

_STEP_COLUMNS = ("run_id", "duration_ns", "running", "preemptions", "recomputed_tokens", "flops", "bytes")
LATENCIES = ("TTFT p50", "TTFT p99", "TPOT p50", "TPOT p99")


@dataclass(frozen=True)
class Baseline:
    """How far the replay as it was is from the recording; `errors` are parts of the recorded figure, by name.

    Null where one of both has no such figure.
    """

    is_exact: bool
    """Every ledger line and every request are the same integers."""
    errors: dict[str, float | None]
    certainty: str | None
    """What else limits the figures of a change; None: the constants were calibrated on this host."""

    def text(self) -> str:
        """One line for the top of every result."""
        if self.is_exact:
            told = "baseline: the replay as it was equals the recording, to the GPU-nanosecond"
        else:
            parts = [f"{name} {moved_text(error)}" for name, error in self.errors.items()]
            told = f"baseline error (replayed against recorded): {', '.join(parts)}"
        return told if self.certainty is None else f"{told}; step times {self.certainty}"


def baseline_of(store: Store, recorded: Recorded, replayed: Outcome) -> Baseline:
    """Compare a replay as it was with the store."""
    lived = [_as_recorded(store, run, recorded) for run in recorded.runs]
    told = Outcome(tuple(lived), recorded.rates)
    is_exact = _same(told.ledger, replayed.ledger, LEDGER.key) and _same(
        told.requests, replayed.requests, ("engine_id", "run_id", "request_id")
    )
    before, after = _figures(told), _figures(replayed)
    errors = {name: _error(figure, after[name]) for name, figure in before.items()}
    return Baseline(is_exact, errors, _certainty(recorded))


def _as_recorded(store: Store, each: RecordedRun, recorded: Recorded) -> Lived:
    """A run as the store has it."""
    run = each.run
    start = run.started_ns // MINUTE_NS * MINUTE_NS
    end = -(-run.wall_end_ns // MINUTE_NS) * MINUTE_NS
    ledger = store.read(LEDGER, None, start, max(end, start + MINUTE_NS), run.engine_id)
    requests = store.read(REQUESTS, KEPT, run.started_ns, None, run.engine_id)
    requests = arrow.where(requests, arrow.is_one_of(requests, "run_id", each.told_by))
    requests = kept(with_lengths(in_window(requests, recorded.window)))
    if run.run_id not in each.told_by:
        requests = arrived_in(requests, run.started_ns, run.wall_end_ns)
    steps = Steps()
    for batch in store.scan(STEPS, _STEP_COLUMNS, run.started_ns, run.wall_end_ns, run.engine_id, coded=True):
        steps = steps.plus(steps_of(run, _of_run(pa.Table.from_batches([batch]), run.run_id)))
    return Lived(run, one_ledger([_of_this_run(ledger, each, recorded)]), requests, steps)


def _of_run(rows: pa.Table, run_id: str) -> pa.Table:
    return arrow.where(rows, arrow.equals(rows, "run_id", run_id))


def _of_this_run(ledger: pa.Table, each: RecordedRun, recorded: Recorded) -> pa.Table:
    """Ledger lines, which name an engine but no run: those of the run that came first in a minute that two share."""
    others = [run.run for run in recorded.runs if run.run.engine_id == each.run.engine_id and run is not each]
    minutes = arrow.ints(ledger, "minute_ns")
    own = minutes >= 0
    for other in others:
        if other.started_ns < each.run.started_ns:
            own &= minutes >= -(-other.wall_end_ns // MINUTE_NS) * MINUTE_NS
    return arrow.where(ledger, own)


def _same(a: pa.Table, b: pa.Table, keys: tuple[str, ...]) -> bool:
    """Whether two tables hold the same rows in any order."""
    if a.num_rows != b.num_rows or sorted(a.column_names) != sorted(b.column_names):
        return False
    order: Any = [(key, "ascending") for key in keys]
    left, right = (_uncoded(table).select(a.column_names).sort_by(order) for table in (a, b))
    return bool(left.equals(right))


def _uncoded(table: pa.Table) -> Any:
    """The table with texts instead of codes, and nothing but types in its schema."""
    schema: Any = table.schema
    fields = [
        pa.field(field.name, pa.string() if "string" in str(field.type) else pa.int64(), nullable=True)
        for field in schema
    ]
    return table.cast(pa.schema(fields))


def _figures(outcome: Outcome) -> dict[str, float | None]:
    latencies = zip(LATENCIES, outcome.waits().latencies, strict=True)
    busy = outcome.busy_micro
    cost = outcome.steps.busy_gpu_ns if busy is None else busy
    return {
        "cost": float(cost),
        **{name: None if ns is None else float(ns) for name, ns in latencies},
        "occupancy": outcome.usage.occupancy,
    }


def _error(recorded: float | None, replayed: float | None) -> float | None:
    return None if recorded is None or replayed is None or not recorded else replayed / recorded - 1


def _certainty(recorded: Recorded) -> str | None:
    """How sure step times are of engines that were not measured here."""
    for run in recorded.runs:
        try:
            origin = recorded_replica(run.config).origin_constants.origin
        except (PlanError, SpecError):
            return UNCALIBRATED
        if not origin.file:
            return UNCALIBRATED
    return None
