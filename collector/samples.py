"""Readings of GPUs and hosts on their way into a store; while its disk is full they wait in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..events import GPU_SAMPLES, HOST_SAMPLES, GpuSample, HostSample, Table

if TYPE_CHECKING:
    from ..storage.store import Store

_MOST_WAITING = 50_000


class SampleLog:
    """Stores readings, the newest 50 000 of those that wait."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting: deque[tuple[Table, GpuSample | HostSample]] = deque(maxlen=_MOST_WAITING)

    def add(self, table: Table, rows: Iterable[GpuSample | HostSample]) -> None:
        """Have readings stored with the next `record`."""
        self._waiting += [(table, row) for row in rows]

    def record(self) -> None:
        """Store what waits; StoreFullError leaves it waiting."""
        for table in (GPU_SAMPLES, HOST_SAMPLES):
            rows = [sample for of, sample in self._waiting if of is table]
            if rows:
                self._store.append_samples(table, table.to_arrow(rows))
                self._waiting = deque([(of, row) for of, row in self._waiting if of is not table], _MOST_WAITING)
