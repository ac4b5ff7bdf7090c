"""Replay: a reader that tells a store's past as if it happened now, so that the same pages show it."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..events import GPU_SAMPLES, INTERVALS, REQUESTS, SHARES, STEPS, Rate, Run, Table
from .numbers import SECOND_NS

if TYPE_CHECKING:
    from pathlib import Path

    from ..storage.store import Store

SPEEDS = (1, 2, 5, 10, 20, 50, 100)
LEAD_NS = 120 * SECOND_NS
"""What happened this long before the start is told at once, so that the pages have their minute."""
AHEAD_S = 30
"""Seconds of the spectator's time that are read at a time."""


class ReplayClock:
    """The past's time of day: from an instant (UTC ns) on, `speed` times as fast as `steady_ns`; it can stand."""

    def __init__(self, at_ns: int, speed: int, steady_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._steady_ns = steady_ns
        self._at_ns = at_ns
        self._since_ns = steady_ns()
        self._speed = speed
        self._stands = False

    @property
    def speed(self) -> int:
        """How many seconds of the past one second shows."""
        return self._speed

    def now_ns(self) -> int:
        """What time it is there."""
        return self._at_ns if self._stands else self._at_ns + (self._steady_ns() - self._since_ns) * self._speed

    def set_speed(self, speed: int) -> None:
        """Go on at another speed."""
        self._at_ns, self._since_ns = self.now_ns(), self._steady_ns()
        self._speed = speed

    def stand(self, stands: bool) -> None:
        """Stop, or go on from where it stopped."""
        self._at_ns, self._since_ns = self.now_ns(), self._steady_ns()
        self._stands = stands


class _Tape:
    """Rows of one table in the order of their time, read ahead of the clock; their numbers serve as ids."""

    def __init__(self, store: Store, table: Table, engine_id: str | None, from_ns: int) -> None:
        self._store, self._table, self._engine_id = store, table, engine_id
        self._read_to_ns = from_ns
        self._rows: list[Any] = []
        self._ends: list[int] = []
        self._dropped = 0

    def read_to(self, until_ns: int, ahead_ns: int) -> None:
        """Read what happened until an instant, and somewhat more."""
        if until_ns < self._read_to_ns:
            return
        to_ns = until_ns + ahead_ns
        read = self._store.read(self._table, None, self._read_to_ns, to_ns, self._engine_id)
        order: list[tuple[str, Any]] = [
            (name, "ascending") for name in dict.fromkeys((self._table.time, *self._table.sort))
        ]
        rows = self._table.from_arrow(read.sort_by(order))
        self._rows += rows
        self._ends += [_end_ns(self._table, row) for row in rows]
        self._read_to_ns = to_ns

    def told(self, after_id: int | None, now_ns: int, limit: int) -> tuple[list[Any], int]:
        """The rows after an id that are over by now, and the last one's id."""
        first = max(0, (after_id or 0) - self._dropped)
        last = min(bisect_right(self._ends, now_ns), first + limit)
        rows = self._rows[first:last]
        number = self._dropped + max(first, last)
        if last > 4 * limit:
            self._rows, self._ends = self._rows[last:], self._ends[last:]
            self._dropped += last
        return rows, number


class ReplayReader:
    """Answers like `LiveReader`, up to what the clock says. It holds a store open; close it."""

    def __init__(self, store: Store, clock: ReplayClock, engine_id: str | None = None) -> None:
        self._store, self._clock = store, clock
        from_ns = clock.now_ns() - LEAD_NS
        engine_tables = (STEPS, SHARES, REQUESTS, INTERVALS)
        self._tapes = {table.name: _Tape(store, table, engine_id, from_ns) for table in engine_tables}
        self._tapes[GPU_SAMPLES.name] = _Tape(store, GPU_SAMPLES, None, from_ns)
        self._engine_id = engine_id
        self._steps_to_ns = clock.now_ns()

    def version(self) -> int | None:
        """Not told: time goes on."""
        return None

    def runs(self) -> list[Run]:
        """The runs that had begun by now, as far as they had come."""
        now = self._clock.now_ns()
        begun = [
            run for run in self._store.runs() if run.started_ns <= now and self._engine_id in (None, run.engine_id)
        ]
        return [_as_of(run, now) for run in begun]

    def rates(self) -> list[Rate]:
        """All rates."""
        return self._store.rates()

    def settings(self, table: Table) -> list[Any]:
        """Settings as they are today."""
        return self._store.settings(table)

    def steps(self, after_id: int | None, since_ns: int | None, limit: int = 20_000) -> tuple[list[Any], int]:
        """Steps that have ended by now."""
        self._steps_to_ns = self._clock.now_ns()
        return self._told(STEPS, after_id, self._steps_to_ns, limit)

    def shares(self, after_id: int | None, since_ns: int | None, limit: int = 20_000) -> tuple[list[Any], int]:
        """Shares of steps that started by now; those of a step that is not told yet wait for it."""
        return self._told(SHARES, after_id, self._steps_to_ns, limit)

    def requests(self, after_id: int | None, since_ns: int | None, limit: int = 20_000) -> tuple[list[Any], int]:
        """Requests that have ended by now."""
        return self._told(REQUESTS, after_id, self._steps_to_ns, limit)

    def intervals(self, after_id: int | None, since_ns: int | None, limit: int = 20_000) -> tuple[list[Any], int]:
        """Intervals of scraped engines that are over by now."""
        return self._told(INTERVALS, after_id, self._steps_to_ns, limit)

    def gpu_samples(self, after_id: int | None, since_ns: int | None, limit: int = 20_000) -> tuple[list[Any], int]:
        """Readings until now."""
        return self._told(GPU_SAMPLES, after_id, self._steps_to_ns, limit)

    def archive_of(self, table: Table, run: Run, since_ns: int) -> Path | None:
        """None: the past comes step by step."""
        return None

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()

    def _told(self, table: Table, after_id: int | None, now_ns: int, limit: int) -> tuple[list[Any], int]:
        tape = self._tapes[table.name]
        tape.read_to(now_ns, AHEAD_S * SECOND_NS * self._clock.speed)
        return tape.told(after_id, now_ns, limit)


def _as_of(run: Run, now_ns: int) -> Run:
    """A run as it was known at an instant."""
    if run.ended_ns is not None and run.ended_ns <= now_ns:
        return run
    return run._replace(heartbeat_ns=min(run.wall_end_ns, now_ns), ended_ns=None)


def _end_ns(table: Table, row: Any) -> int:
    """When a row is known: a step or an interval at its end, everything else at its own time."""
    at: int = getattr(row, table.time)
    return at + row.duration_ns if table in (STEPS, INTERVALS) else at
