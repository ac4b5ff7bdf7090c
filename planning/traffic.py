"""Recorded traffic: a store's requests as arrivals, run by run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..costing import arrow
from ..engine.arrival import Arrival
from ..engine.config import EngineConfig
from ..events import CAPACITIES, REQUESTS, STEPS, Rate, Run
from .arrivals import arrivals_of
from .asked import read_asked
from .configuration import configuration_of
from .errors import PlanError

if TYPE_CHECKING:
    from ..costing.periods import Period
    from ..storage.store import Store


class RecordedRun(NamedTuple):
    """One run of one engine: how it was set up, what it was asked, and when it was up."""

    run: Run
    config: EngineConfig
    arrivals: tuple[Arrival, ...]
    stays_up: bool
    """Whether it was up beyond its last step; else it ends with its work, as the run of a trace does."""
    told_by: tuple[str, ...]
    """The runs under which its requests are recorded: itself, or those of who stood in front of it."""

    @property
    def key(self) -> tuple[str, str]:
        """Engine and run."""
        return self.run.engine_id, self.run.run_id

    @property
    def is_refusal(self) -> bool:
        """Whether it served nobody: a fleet tells what it refused by a run that takes no time."""
        return self.run.wall_end_ns == self.run.started_ns


@dataclass(frozen=True)
class Recorded:
    """What a store tells of a stretch of time, enough to live it once more."""

    store: Path
    window: Period | None
    """None: all that is recorded."""
    runs: tuple[RecordedRun, ...]
    rates: tuple[Rate, ...]
    has_capacities: bool
    """Whether GPUs are declared: their time without a run is no engine's, and no plan changes it."""
    unknown: int = 0
    """Requests left out because they do not tell their lengths."""
    unserved: int = 0
    """Requests left out because no engine of the store is known to have served them: they were only metered outside."""

    @cached_property
    def arrivals(self) -> tuple[Arrival, ...]:
        """All requests, in order of arrival."""
        return tuple(sorted((a for run in self.runs for a in run.arrivals), key=lambda a: a.arrived_ns))

    @cached_property
    def tenants(self) -> tuple[str, ...]:
        """Who asked, in order of name."""
        return tuple(sorted({arrival.tenant_id for run in self.runs for arrival in run.arrivals}))

    @property
    def from_ns(self) -> int:
        """When the first run began, UTC."""
        return min(run.run.started_ns for run in self.runs)

    @property
    def to_ns(self) -> int:
        """When the last run ended, UTC."""
        return max(run.run.wall_end_ns for run in self.runs)


def read_recorded(store: Store, window: Period | None = None) -> Recorded:
    """The runs of a store with the requests that arrived in `window`, by default all.

    A run that the window cuts is up within it only. Raises PlanError when there is nothing to replay.
    """
    runs = [run for run in (_within(run, window) for run in store.runs()) if run is not None]
    asked = read_asked(store, window, runs)
    engines = [run for run in runs if run.gpus]
    ends, nothing = _last_ends(store, engines), REQUESTS.schema.empty_table()
    found = [_recorded_run(store, run, asked.served.get((run.engine_id, run.run_id), nothing), ends) for run in engines]
    if not any(each.arrivals for each in found):
        raise PlanError(_nothing(store, window, asked.unserved))
    has_capacities = bool(store.settings(CAPACITIES))
    return Recorded(
        store.path, window, tuple(found), tuple(store.rates()), has_capacities, asked.unknown, asked.unserved
    )


def _nothing(store: Store, window: Period | None, unserved: int) -> str:
    """Why there is nothing to replay."""
    when = "" if window is None else f" between {window.name.replace('/', ' and ')}"
    if unserved:
        return (
            f"{store.path} knows {unserved:,} requests{when}, and no engine that served them: on what is not "
            "recorded, so there is nothing to replay them on; collect the engine, too, under the same name"
        )
    if store.extent(STEPS) is not None and store.extent(REQUESTS) is None:
        return (
            f"{store.path} has steps, and no requests: the metrics page of an engine does not tell who asked for "
            "how much, so there is no traffic to replay; put farebox proxy in front, or the vLLM plugin inside"
        )
    return f"{store.path} holds no finished requests{when}: there is no traffic to replay"


def _within(run: Run, window: Period | None) -> Run | None:
    """The run as far as it lies in the window; None outside of it."""
    if window is None:
        return run
    start, end = max(run.started_ns, window.from_ns), min(run.wall_end_ns, window.to_ns)
    if start > end or (start == end and run.wall_end_ns > run.started_ns):
        return None
    loaded = max(run.started_ns + run.load_ns - start, 0)
    return run._replace(started_ns=start, load_ns=min(loaded, end - start), heartbeat_ns=end, ended_ns=end)


def _recorded_run(store: Store, run: Run, rows: pa.Table, ends: dict[tuple[str, str], int]) -> RecordedRun:
    config = configuration_of(run)
    arrivals = arrivals_of(rows, config)
    if config.async_scheduling and any(arrival.abort_ns is not None for arrival in arrivals):
        arrivals = _noticed_earlier(store, run, arrivals)
    told_by = tuple(arrow.coded(rows, "run_id")[1])
    return RecordedRun(run, config, arrivals, _stays_up(run, arrivals, ends), told_by)


def _noticed_earlier(store: Store, run: Run, arrivals: tuple[Arrival, ...]) -> tuple[Arrival, ...]:
    """Arrivals of an asynchronous engine, which lets who hung up go at the end of the step that was then on its way."""
    steps = store.read(STEPS, ("started_ns", "duration_ns"), run.started_ns, None, run.engine_id)
    started, aborts = arrow.ints(steps, "started_ns"), [each.abort_ns for each in arrivals]
    ended = started + arrow.ints(steps, "duration_ns")
    noticed = np.isin(ended, [at_ns for at_ns in aborts if at_ns is not None])
    begun = dict(zip(ended[noticed].tolist(), started[noticed].tolist(), strict=True))
    return tuple(
        arrival
        if arrival.abort_ns is None
        else arrival._replace(abort_ns=begun.get(arrival.abort_ns, arrival.abort_ns))
        for arrival in arrivals
    )


def _stays_up(run: Run, arrivals: tuple[Arrival, ...], ends: dict[tuple[str, str], int]) -> bool:
    """Whether its wall goes on after the last thing that it did."""
    return not arrivals or run.wall_end_ns > ends.get((run.engine_id, run.run_id), 0)


def _last_ends(store: Store, runs: Iterable[Run]) -> dict[tuple[str, str], int]:
    """When each run's last step or request ended, UTC, from the last minutes of its rows."""
    ends: dict[tuple[str, str], int] = {}
    for run in runs:
        since = run.wall_end_ns - 120_000_000_000
        for table, names in ((STEPS, ("started_ns", "duration_ns")), (REQUESTS, ("finished_ns",))):
            rows: Any = store.read(table, ("run_id", *names), since, run.wall_end_ns + 1, run.engine_id)
            for row in rows.to_pylist():
                if row["run_id"] == run.run_id:
                    key = run.engine_id, run.run_id
                    ends[key] = max(ends.get(key, 0), sum(row[name] for name in names))
    return ends


def groups_of(runs: Iterable[RecordedRun]) -> dict[str, list[RecordedRun]]:
    """Runs of engines that are alike but for their numbers, by name of their endpoint: chat-0 and chat-1 are chat."""
    found: defaultdict[tuple[Any, str], list[RecordedRun]] = defaultdict(list)
    for run in runs:
        head, dash, tail = run.run.engine_id.rpartition("-")
        stem = head if dash and tail.isdigit() else run.run.engine_id
        found[replace(run.config, engine_id=stem, run_id="", gpu_uuids=()), stem].append(run)
    names: dict[str, list[RecordedRun]] = {}
    for (_, stem), alike in found.items():
        names[stem if stem not in names else f"{stem}'{len(names)}"] = alike
    return names
