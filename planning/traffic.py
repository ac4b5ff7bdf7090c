"""Recorded traffic: a store's requests as arrivals, run by run."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, Any, NamedTuple

from ..engine.arrival import Arrival
from ..engine.config import EngineConfig
from ..events import CAPACITIES, REQUESTS, STEPS, Rate, Run
from .configuration import configuration_of
from .errors import PlanError

if TYPE_CHECKING:
    from ..costing.periods import Period
    from ..storage.store import Store

CUT_SHORT = ("abort", "error", "rejected")
"""Ends that hide how long an answer would have been."""
_NUMBER = re.compile(r"(.*?)(\d*)", re.DOTALL)


class Row(NamedTuple):
    """What is read of a request; see `Request`."""

    request_id: str
    engine_id: str
    run_id: str
    tenant_id: str
    tier: Any
    arrived_ns: int
    scheduled_ns: int | None
    finished_ns: int
    prompt_tokens: int
    """Requests that tell no lengths are not read: nobody can replay them."""
    output_tokens: int
    max_tokens: int | None
    finish_reason: str
    prefix_ids: list[int] | None


class RecordedRun(NamedTuple):
    """One run of one engine: how it was set up, what it was asked, and when it was up."""

    run: Run
    config: EngineConfig
    arrivals: tuple[Arrival, ...]
    stays_up: bool
    """Whether it was up beyond its last step; else it ends with its work, as the run of a trace does."""

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
    unknown: list[str] = []
    asked = _by_run(store, window, unknown)
    ends = _last_ends(store, runs)
    found = [_recorded_run(store, run, asked.get((run.engine_id, run.run_id), []), ends) for run in runs]
    if not any(each.arrivals for each in found):
        when = "" if window is None else f" between {window.name.replace('/', ' and ')}"
        raise PlanError(f"{store.path} holds no finished requests{when}: there is no traffic to replay")
    has_capacities = bool(store.settings(CAPACITIES))
    return Recorded(store.path, window, tuple(found), tuple(store.rates()), has_capacities, len(unknown))


def _within(run: Run, window: Period | None) -> Run | None:
    """The run as far as it lies in the window; None outside of it."""
    if window is None:
        return run
    start, end = max(run.started_ns, window.from_ns), min(run.wall_end_ns, window.to_ns)
    if start > end or (start == end and run.wall_end_ns > run.started_ns):
        return None
    loaded = max(run.started_ns + run.load_ns - start, 0)
    return run._replace(started_ns=start, load_ns=min(loaded, end - start), heartbeat_ns=end, ended_ns=end)


def _recorded_run(store: Store, run: Run, rows: list[Row], ends: dict[tuple[str, str], int]) -> RecordedRun:
    config = configuration_of(run)
    arrivals = _arrivals(rows, config)
    if config.async_scheduling and any(arrival.abort_ns is not None for arrival in arrivals):
        arrivals = _noticed_earlier(store, run, arrivals)
    return RecordedRun(run, config, arrivals, _stays_up(run, arrivals, ends))


def _noticed_earlier(store: Store, run: Run, arrivals: tuple[Arrival, ...]) -> tuple[Arrival, ...]:
    """Arrivals of an asynchronous engine, which lets who hung up go at the end of the step that was then on its way."""
    steps: Any = store.read(STEPS, ("run_id", "started_ns", "duration_ns"), run.started_ns, None, run.engine_id)
    begun = {row["started_ns"] + row["duration_ns"]: row["started_ns"] for row in steps.to_pylist()}
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


def _by_run(store: Store, window: Period | None, unknown: list[str]) -> dict[tuple[str, str], list[Row]]:
    rows: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    start = None if window is None else window.from_ns
    for batch in store.scan(REQUESTS, Row._fields, start):
        columns: list[Any] = [batch.column(name).to_pylist() for name in Row._fields]
        for row in map(Row._make, zip(*columns, strict=True)):
            lengths: Any = (row.prompt_tokens, row.output_tokens)
            if None in lengths:
                unknown.append(row.request_id)
            elif window is None or window.from_ns <= row.arrived_ns < window.to_ns:
                rows[row.engine_id, row.run_id].append(row)
    return rows


def _arrivals(rows: list[Row], config: EngineConfig) -> tuple[Arrival, ...]:
    usual = _usual_lengths(rows)
    rows.sort(key=_order)
    return tuple(_arrival(row, usual.get(row.tenant_id, 1), config) for row in rows)


def _order(row: Row) -> tuple[Any, ...]:
    """Order of arrival; of those that came at once, who got on first, else as they are numbered."""
    text, number = _NUMBER.fullmatch(row.request_id).groups()  # pyright: ignore[reportOptionalMemberAccess] -- any text
    scheduled = row.scheduled_ns
    return row.arrived_ns, row.finished_ns if scheduled is None else scheduled, text, int(number or 0)


def _usual_lengths(rows: Iterable[Row]) -> dict[str, int]:
    """The median answer of each tenant that was not cut short, in tokens."""
    lengths: defaultdict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row.finish_reason not in CUT_SHORT:
            lengths[row.tenant_id].append(row.output_tokens)
    return {tenant: median_low(known) for tenant, known in lengths.items()}


def _arrival(row: Row, usual: int, config: EngineConfig) -> Arrival:
    """A request as it arrived. An answer that was cut short had at least one token to go, or as many as usual."""
    reason, output, limit = row.finish_reason, row.output_tokens, row.max_tokens
    room = config.usable_blocks * config.block_size - row.prompt_tokens
    if reason == "rejected":
        output = max(usual, room + 1) if room >= 0 else usual
    elif reason in CUT_SHORT:
        output = max(output + 1, min(usual, room))
    return Arrival(
        request_id=row.request_id,
        tenant_id=row.tenant_id,
        tier=row.tier,
        arrived_ns=row.arrived_ns,
        prompt_tokens=row.prompt_tokens,
        output_tokens=output,
        max_tokens=limit if reason != "rejected" or limit is None else max(limit, output),
        prefix_ids=None if row.prefix_ids is None else tuple(row.prefix_ids),
        abort_ns=row.finished_ns if reason in ("abort", "error") else None,
    )


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
