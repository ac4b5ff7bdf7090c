"""A backlog: batches that wait in memory while the store's disk is full."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..events import LEDGER, REQUESTS, SHARES, SOURCE_STATES, STEPS, Batch, SourceState
from ..storage.errors import StoreFullError
from ..storage.layout import instant_text

if TYPE_CHECKING:
    from .keeper import Keeper

MOST_ROWS = 1_000_000
"""Steps, shares and requests that wait, some 200 MB; what is more is dropped, the oldest first."""


class Backlog:
    """Writes batches in their order; while the disk is full they wait here, and every new one is another try.

    Of batches beyond `most_rows` the single steps, shares and requests are dropped and counted. Their lines of the
    ledger are kept, so bills stay complete. How long that was is a state of the source `store:disk`.
    """

    def __init__(
        self,
        store: Keeper,
        write: Callable[[Batch], None],
        most_rows: int = MOST_ROWS,
        tell: Callable[[str], None] = lambda text: print(text, file=sys.stderr),
    ) -> None:
        self._store, self._write, self._most_rows, self._tell = store, write, most_rows, tell
        self._waiting: deque[Batch] = deque()
        self._since_ns: int | None = None
        self._dropped: dict[str, int] = {}

    @property
    def dropped(self) -> dict[str, int]:
        """Rows that were dropped for lack of room, by table."""
        return dict(self._dropped)

    def put(self, batch: Batch) -> None:
        """Write a batch and what waits before it, or keep it; the last one of a run raises StoreFullError then."""
        self._waiting.append(batch)
        try:
            self._drain()
        except StoreFullError as error:
            self._hold(error)
            if batch.run.ended_ns is not None:
                raise

    def _drain(self) -> None:
        while self._waiting:
            self._write(self._waiting[0])
            self._waiting.popleft()
        if self._since_ns is not None:
            since_ns, self._since_ns = self._since_ns, None
            self._note(since_ns)

    def _hold(self, error: StoreFullError) -> None:
        if self._since_ns is None:
            self._since_ns = time.time_ns()
            self._tell(f"{error}; events wait in memory until there is room")
        over = sum(map(_rows, self._waiting)) - self._most_rows
        for i, batch in enumerate(self._waiting):
            if over <= 0:
                break
            over -= _rows(batch)
            self._count(batch)
            self._waiting[i] = _only_ledger(batch)
        while len(self._waiting) > 1 and not _rows(self._waiting[0]) and not _rows(self._waiting[1]):
            first = self._waiting.popleft()
            self._waiting[0] = _with_ledger(self._waiting[0], first.ledger)

    def _count(self, batch: Batch) -> None:
        for name in ("steps", "shares", "requests"):
            rows = getattr(batch, name).num_rows
            if rows:
                self._dropped[name] = self._dropped.get(name, 0) + rows

    def _note(self, since_ns: int) -> None:
        """Keep in the store how long there was no room, now that there is."""
        now_ns = time.time_ns()
        lost = ", ".join(f"{count:,} {name}" for name, count in self._dropped.items())
        outcome = f"{lost} were dropped; what they cost is in the ledger" if lost else "nothing was lost"
        why = f"no room from {instant_text(since_ns)} to {instant_text(now_ns)}: {outcome}"
        self._store.put(SOURCE_STATES, SourceState("store:disk", "disk", "down", since_ns, now_ns, why))
        self._store.put(SOURCE_STATES, SourceState("store:disk", "disk", "up", now_ns, now_ns, None))
        self._tell(f"recording again; {why}")


def _rows(batch: Batch) -> int:
    return batch.steps.num_rows + batch.shares.num_rows + batch.requests.num_rows


def _only_ledger(batch: Batch) -> Batch:
    empty: Any = [table.schema.empty_table() for table in (STEPS, SHARES, REQUESTS)]
    return batch._replace(steps=empty[0], shares=empty[1], requests=empty[2])


def _with_ledger(batch: Batch, lines: pa.Table) -> Batch:
    return batch._replace(ledger=pa.concat_tables([lines, batch.ledger]).cast(LEDGER.schema))
