"""The feed: reads what is new in a store and tells what the last minute looked like."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..events import (
    ADVICE,
    ALERTS,
    BUDGET_STATES,
    PRICES,
    SOURCE_STATES,
    STEPS,
    TEAM_RENAMES,
    TENANTS,
    Advice,
    Alert,
    GpuSample,
    Interval,
    Rate,
    Request,
    Run,
    Share,
    SourceState,
    Step,
    Table,
    TokenPrice,
    newest_states,
)
from .alerts import Watch, alerts_of
from .archived import fold_apart
from .budget_book import Budgets
from .figures import Context, Peaks, snapshot_of
from .fold import Fold
from .numbers import SECOND_NS, clock
from .scene import Scene
from .snapshot import Snapshot, State, Tip

WINDOW_S = 60
BACKFILL_S = 120
LOST_AFTER_NS = 10 * SECOND_NS
SETTINGS_NS = 10 * SECOND_NS
PAGE = 20_000
TIPS = 3

Row = TypeVar("Row")
Key = tuple[str, str]
Intervals = tuple[list[Interval], int]


class Reader(Protocol):
    """What the feed asks of a store; `storage.live.LiveReader` is one.

    There is nothing new as long as `version` stays the same number; None: it is not told. `steps`, `shares` and
    `requests` give the rows with id > `after_id`, or from `since_ns` on when that is None, and the last id given.
    `archive_of` gives the store in whose archive alone some of a run's rows are, or None.
    """

    def version(self) -> int | None: ...  # noqa: D102
    def runs(self) -> list[Run]: ...  # noqa: D102
    def rates(self) -> list[Rate]: ...  # noqa: D102
    def settings(self, table: Table) -> list[Any]: ...  # noqa: D102
    def steps(self, after_id: int | None, since_ns: int | None, limit: int = PAGE) -> tuple[list[Step], int]: ...  # noqa: D102
    def shares(self, after_id: int | None, since_ns: int | None, limit: int = PAGE) -> tuple[list[Share], int]: ...  # noqa: D102
    def requests(self, after_id: int | None, since_ns: int | None, limit: int = PAGE) -> tuple[list[Request], int]: ...  # noqa: D102
    def intervals(self, after_id: int | None, since_ns: int | None, limit: int = PAGE) -> Intervals: ...  # noqa: D102
    def gpu_samples(  # noqa: D102
        self, after_id: int | None, since_ns: int | None, limit: int = PAGE
    ) -> tuple[list[GpuSample], int]: ...
    def archive_of(self, table: Table, run: Run, since_ns: int) -> Path | None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


class Feed:
    """Keeps the last minutes of a store in memory, and reads only what was added since the last poll.

    `peaks` gives a GPU type's datasheet peaks (FLOP/s, bytes/s per GPU), or None for a type it does not know. `wall_ns`
    is the time of day and `steady_ns` a clock that never jumps: tests pass their own. `fold_archived` folds what a
    store's archive holds of a run from an instant on (UTC ns).
    """

    def __init__(
        self,
        reader: Reader,
        peaks: Peaks | None = None,
        window_s: int = WINDOW_S,
        wall_ns: Callable[[], int] = time.time_ns,
        steady_ns: Callable[[], int] = time.monotonic_ns,
        fold_archived: Callable[[Path, Run, int], Fold | None] = fold_apart,
    ) -> None:
        self._reader = reader
        self._peaks = peaks
        self._fold_archived = fold_archived
        self._window_ns = window_s * SECOND_NS
        self.wall_ns = wall_ns
        self.steady_ns = steady_ns
        self._version: int | None = None
        self._runs: list[Run] = []
        self._rates: list[Rate] = []
        self._folds: dict[Key, Fold] = {}
        self._since_ns: int | None = None
        self._after: dict[str, int | None] = dict.fromkeys(("steps", "shares", "requests", "intervals", "gpu"))
        self._gpus: list[GpuSample] = []
        self._sources: list[SourceState] = []
        self._prices: list[TokenPrice] = []
        self._alerts: list[Alert] = []
        self._tips: tuple[Tip, ...] = ()
        self.engine_id: str | None = None
        """The engine to watch; None: whichever told something last."""
        self.scene: Scene | None = None
        """What the last poll saw."""
        self._moved: tuple[Key, int, int] | None = None
        self._budgets: tuple[int, Budgets] | None = None

    def poll(self) -> Snapshot | None:
        """Read what is new and take a snapshot of the newest engine; None while the store holds no run.

        Raises what the reader raises (`StoreError`), and then can be polled again.
        """
        version = self._reader.version()
        has_news = version is None or version != self._version
        if has_news:
            self._look()
            self._version = version
        if not self._runs:
            return None
        fold = self._front()
        now = _now(fold)
        state, behind = self._state(fold, now)
        if not has_news and self.scene and self.scene.still_shows(fold, state, behind):
            return self.scene.snapshot
        snapshot = self._snapshot(fold, now, state, behind)
        host = tuple(sample for sample in self._gpus if sample.host == fold.run.host)
        peak = self._peaks(fold.run.gpu_type) if self._peaks else None
        self.scene = Scene(fold, snapshot, tuple(self._runs), host or tuple(self._gpus), tuple(self._sources), peak)
        return snapshot

    def _look(self) -> None:
        """Read what is new."""
        self._runs = self._reader.runs()
        self._rates = self._reader.rates()
        self._sources = newest_states(self._reader.settings(SOURCE_STATES))
        if self._runs:
            self._follow(self._runs)
            self._read()

    def _follow(self, runs: Sequence[Run]) -> None:
        if self._since_ns is None:
            self._since_ns = max(r.wall_end_ns for r in runs) - BACKFILL_S * SECOND_NS
        for run in runs:
            key = (run.engine_id, run.run_id)
            fold = self._folds.get(key)
            if fold is None and run.wall_end_ns >= self._since_ns:
                self._folds[key] = self._archived(run) or Fold(run, self._since_ns)
            elif fold is not None:
                just_ended = run.ended_ns is not None and fold.run.ended_ns is None
                fold.run = run
                if just_ended and (told := self._archived(run)):
                    self._folds[key] = told

    def _archived(self, run: Run) -> Fold | None:
        """The last minutes of a run that was told to the archive, at full speed; None: it was told live."""
        since_ns = run.wall_end_ns - BACKFILL_S * SECOND_NS
        store = self._reader.archive_of(STEPS, run, since_ns)
        return None if store is None else self._fold_archived(store, run, since_ns)

    def _read(self) -> None:
        """Fold the new rows. Steps are read before shares, so that every step read has its shares."""
        steps = self._new("steps", self._reader.steps)
        shares = self._new("shares", self._reader.shares)
        requests = self._new("requests", self._reader.requests)
        intervals = self._new("intervals", self._reader.intervals)
        for step in steps:
            if fold := self._folds.get((step.engine_id, step.run_id)):
                fold.step(step)
        cells = _by_run(shares)
        for key, fold in self._folds.items():
            fold.shares(cells.get(key, ()))
        for interval in intervals:
            if fold := self._folds.get((interval.engine_id, interval.run_id)):
                fold.interval(interval)
        for request in requests:
            if fold := self._folds.get((request.engine_id, request.run_id)):
                fold.request(request)
        for fold in self._folds.values():
            fold.board()
        self._gpus += self._new("gpu", self._reader.gpu_samples)
        newest = max((sample.at_ns for sample in self._gpus), default=0)
        self._gpus = [sample for sample in self._gpus if sample.at_ns > newest - WINDOW_S * SECOND_NS]

    def _new(self, name: str, read: Callable[[int | None, int | None, int], tuple[list[Row], int]]) -> list[Row]:
        found: list[Row] = []
        while True:
            rows, last = read(self._after[name], self._since_ns, PAGE)
            self._after[name] = last
            found += rows
            if len(rows) < PAGE:
                return found

    def _front(self) -> Fold:
        """The run to show: the newest one of the engine that is watched, else the newest of all."""
        watched = [fold for fold in self._folds.values() if fold.run.engine_id == self.engine_id]
        return max(watched or self._folds.values(), key=lambda f: (_now(f), f.run.started_ns))

    def _snapshot(self, fold: Fold, now: int, state: State, behind: int | None) -> Snapshot:
        fold.forget(now)
        others = sum(1 for r in self._runs if r.ended_ns is None and r.engine_id != fold.run.engine_id)
        budgets = self._newest_budgets()
        context = Context(
            *(now, self._window_ns, state, behind, others, self._rates, self._peaks),
            budgets=budgets.at(now),
            teams=budgets.teams(now),
            trouble=self._trouble(fold),
        )
        snapshot = snapshot_of(fold, context)
        alerts = alerts_of(Watch(snapshot, fold, self._sources, self._prices, self._alerts))
        return replace(snapshot, alerts=alerts, tips=self._tips)

    def _newest_budgets(self) -> Budgets:
        """Budgets and tenants, read again when ten seconds have passed: they change once a minute at most."""
        at = self.steady_ns()
        if self._budgets is None or at - self._budgets[0] >= SETTINGS_NS:
            read = self._reader.settings
            self._budgets = at, Budgets(read(BUDGET_STATES), read(TENANTS), read(TEAM_RENAMES))
            self._prices = read(PRICES)
            self._alerts = [alert for alert in read(ALERTS) if alert.ended_ns is None]
            self._tips = tuple(_tip(row) for row in sorted(read(ADVICE))[:TIPS])
        return self._budgets[1]

    def _trouble(self, fold: Fold) -> str | None:
        """What is wrong with the source of a scraped engine, as it stands now."""
        if not fold.intervals:
            return None
        newest = next((s for s in self._sources if s.source == fold.run.engine_id), None)
        if newest is None or newest.state == "up":
            return None
        return f"{newest.source} {newest.state} since {clock(newest.since_ns)}: {newest.why}"

    def _state(self, fold: Fold, now: int) -> tuple[State, int | None]:
        """How the engine is doing, and how many whole seconds (in ns) the newest event lies behind the time of day."""
        run = fold.run
        if run.ended_ns is not None:
            return "ended", None
        behind = (self.wall_ns() - now) // SECOND_NS * SECOND_NS if run.clock == "real" else None
        patience_ns = LOST_AFTER_NS + 2 * max((i.duration_ns for i in list(fold.intervals)[-3:]), default=0)
        if self._still_ns(run, now) > patience_ns or (behind or 0) > patience_ns:
            return "lost", behind
        if now < fold.up_ns:
            return "starting", behind
        return ("idle" if now - fold.still_since_ns >= SECOND_NS else "live"), behind

    def _still_ns(self, run: Run, now: int) -> int:
        """For how long nothing of this run has moved, on the steady clock."""
        at, key = self.steady_ns(), (run.engine_id, run.run_id)
        if self._moved is None or self._moved[:2] != (key, now):
            self._moved = (key, now, at)
        return at - self._moved[2]


def _now(fold: Fold) -> int:
    newest = fold.run.wall_end_ns
    return newest if fold.last_step is None else max(newest, fold.last_step.ended_ns)


def _tip(row: Advice) -> Tip:
    return Tip(row.title, row.currency, row.saved_micro, row.freed_gpu_ns, row.command)


def _by_run(shares: Sequence[Share]) -> dict[Key, list[Share]]:
    runs: dict[Key, list[Share]] = {}
    for cell in shares:
        runs.setdefault((cell.engine_id, cell.run_id), []).append(cell)
    return runs
