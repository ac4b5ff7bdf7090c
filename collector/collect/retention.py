"""Forgetting what is old, as the configuration says."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...events import EVENT_TABLES
from ..config.retention import RetentionConfig
from .thread import Tell

if TYPE_CHECKING:
    from ...storage.store import Store

PERIOD_S = 3600.0


class Retention:
    """Removes archived days that are older than their table's rows are kept, once an hour.

    An archive that somebody reads just then is left as it is until the next time.
    """

    def __init__(
        self, config: RetentionConfig, store: Store, tell: Tell, clock: Callable[[], float] = time.monotonic
    ) -> None:
        kept: dict[str, int] = config.model_dump(exclude_none=True)
        self._days = {table: kept[table.name] for table in EVENT_TABLES if table.name in kept}
        self._store = store
        self._tell = tell
        self._clock = clock
        self._due_s = clock()

    def turn(self) -> None:
        """Forget, if it is time; FareboxError where the archive is busy or cannot be written."""
        if not self._days or self._clock() < self._due_s:
            return
        self._due_s = self._clock() + PERIOD_S
        for gone in self._store.forget(self._days, time.time_ns()):
            if gone.rows:
                self._tell(f"{gone.table}: {gone.rows:,} rows before {gone.before} are gone, as retention says")
