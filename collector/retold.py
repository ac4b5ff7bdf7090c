"""A run that is told again: the same as it was recorded, or something else, which is kept aside."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ..events import REQUESTS, SHARES, STEPS, Table
from ..storage.rows import extent
from .aside import Aside

if TYPE_CHECKING:
    from ..storage.store import Store

_COMPUTED = {STEPS.name: ("prefill_ns", "decode_ns"), SHARES.name: ("gpu_ns",), REQUESTS.name: ("gpu_ns",)}
"""Columns that engines do not tell, or not exactly."""
_OWNER = {STEPS.name: "step_seq", SHARES.name: "step_seq", REQUESTS.name: "request_id"}
"""What of a run a row is about."""
_UNSAFE = re.compile(r"[^\w.-]")


class Retold:
    """Compares what a run tells again with what a store has of it; `count` rows were recorded with other content.

    What is recorded stays, and what a run tells after it contradicted itself continues nothing: recorders leave it out.
    Rows that the store lost, or cannot read, are no contradiction.
    """

    def __init__(self, store: Store, engine_id: str, run_id: str) -> None:
        self._store, self._engine_id, self._run_id = store, engine_id, run_id
        self._aside = Aside(store.path, _UNSAFE.sub("_", f"run-{engine_id}-{run_id}"))

    @property
    def count(self) -> int:
        """Rows that were told with other content than they are recorded with."""
        return self._aside.count

    @property
    def says(self) -> str | None:
        """What was found, in words; None: nothing."""
        if not self.count:
            return None
        return (
            f"{self.count:,} rows of run {self._run_id} are recorded with other content: what was told now is in"
            f" {self._aside.path}, and nothing that comes after it is recorded"
        )

    def compare(self, steps: pa.Table, shares: pa.Table, requests: pa.Table) -> None:
        """Look up rows that the store's progress covers."""
        for table, told in ((STEPS, steps), (SHARES, shares), (REQUESTS, requests)):
            if told.num_rows:
                self._compare(table, told)

    def _compare(self, table: Table, told: pa.Table) -> None:
        names = [column.name for column in table.columns if column.name not in _COMPUTED[table.name]]
        first_ns, last_ns = extent(told, table.time)
        recorded = self._store.read(table, names, first_ns, last_ns + 1, self._engine_id)
        recorded = recorded.filter(pc.field("run_id") == self._run_id)
        told = told.select(names).cast(recorded.schema)
        order: Any = [(name, "ascending") for name in table.key]
        if told.sort_by(order).equals(recorded.sort_by(order)):
            return
        owner = _OWNER[table.name]
        known: dict[Any, list[dict[str, Any]]] = {}
        for row in recorded.to_pylist():
            known.setdefault(row[owner], []).append(row)
        for row in told.to_pylist():
            if row[owner] in known and row not in known[row[owner]]:
                self._aside.put({table.name: row}, "it was told before with other content")
