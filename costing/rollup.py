"""Roll-ups: sums by names and period over any number of rows, batch by batch, in memory that only the answer needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..events import LEDGER, MINUTE_NS
from . import arrow
from .segments import Ints

ROWS_KEPT = 1 << 18
"""Partial sums are added up whenever there are more than so many."""
SLOTS = 1 << 20
"""Groups that may be numbered by a table of their codes; more are sorted."""
LINE_KEYS = tuple(name for name in LEDGER.key if name != LEDGER.time)
LINE_SUMS = ("gpu_ns", "prompt_tokens", "cached_tokens", "output_tokens", "requests")
"""What bills add up; KV occupancy is none of it, and would not fit 64 bits over a day."""
LINE_COLUMNS = (LEDGER.time, *LINE_KEYS, *LINE_SUMS)
_compute: Any = pc


def roll_ledger(batches: Iterable[pa.RecordBatch], borders: Iterable[int], first_ns: int, last_ns: int) -> pa.Table:
    """Add up ledger lines (with `LINE_COLUMNS`) between borders, each sum dated by the border before it.

    `first_ns` and `last_ns` are the first and the last minute of lines that count, which stay apart. The answer has the
    columns of LEDGER, `kv_block_ns` null.
    """
    end_ns = last_ns + MINUTE_NS
    edges = sorted({first_ns, last_ns, end_ns, *(at for at in borders if first_ns < at < end_ns)})
    lines = roll_up(batches, LINE_KEYS, LINE_SUMS, LEDGER.time, edges)
    lines = lines.append_column("kv_block_ns", pa.nulls(lines.num_rows, pa.int64()))
    return lines.select(LEDGER.schema.names)


def roll_up(
    batches: Iterable[pa.RecordBatch], keys: Sequence[str], sums: Sequence[str], time: str, borders: Sequence[int]
) -> pa.Table:
    """Sum the integer columns `sums` over rows with equal text columns `keys` within one period.

    Periods are [borders[i], borders[i + 1]) in UTC ns, rising; rows whose `time` lies outside are left out. The answer
    holds `time` (int64: start of the period), `keys` and `sums`, sorted by time and keys. Sums are exact below 2⁶³.
    Texts may come as dictionaries, which is faster. Raises ValueError where a key or a number is unknown (null).
    """
    kinds = dict.fromkeys((time, *keys, *sums), pa.int64()) | dict.fromkeys(keys, pa.string())
    totals = Totals(pa.schema(list(kinds.items())), (time, *keys))
    edges = np.asarray(borders, np.int64)
    for batch in batches:
        period = _periods(_numbers(batch, time), edges)
        inside = (period >= 0) & (period < len(edges) - 1)
        if inside.all():
            totals.add(_sum_rows(batch, keys, sums, time, edges, period))
        elif inside.any():
            totals.add(_sum_rows(batch.filter(pa.array(inside)), keys, sums, time, edges, period[inside]))
    return totals.all().sort_by([(name, "ascending") for name in (time, *keys)])


class Totals:
    """Rows that add up by `keys`, all other columns being integers; memory is for the answer, not for the rows."""

    def __init__(self, schema: pa.Schema, keys: Sequence[str]) -> None:
        self._schema = schema
        self._keys = keys
        self._tables = [schema.empty_table()]
        self._kept = 0

    def add(self, rows: pa.Table) -> None:
        """Count more rows, of the same columns."""
        self._tables.append(rows.cast(self._schema))
        self._kept += rows.num_rows
        if self._kept > ROWS_KEPT:
            self._tables, self._kept = [self.all()], 0

    def all(self) -> pa.Table:
        """One row per key, in no order to rely on."""
        return arrow.total_by(pa.concat_tables(self._tables), self._keys).cast(self._schema)


def _periods(at_ns: Ints, edges: Ints) -> Ints:
    """The period of each instant (int64[rows]); most batches lie within one, which is told once (int64[])."""
    ends = [at_ns.min(), at_ns.max()] if len(at_ns) else [-1, -1]
    first, last = np.searchsorted(edges, ends, side="right") - 1
    return first if first == last else np.searchsorted(edges, at_ns, side="right") - 1


def _sum_rows(
    rows: pa.RecordBatch, keys: Sequence[str], sums: Sequence[str], time: str, edges: Ints, period: Ints
) -> pa.Table:
    first = period.min()
    codes = [(period - first, int(period.max() - first) + 1), *(_codes(rows, key) for key in keys)]
    group, size = _group(codes, rows.num_rows)
    example = np.full(size, -1, np.int64)
    example[group] = np.arange(len(group))
    used = example[example >= 0]
    columns: dict[str, Any] = {time: pa.array(edges[np.broadcast_to(period, len(group))[used]])}
    columns |= {key: _column(rows, key).take(pa.array(used)).cast(pa.string()) for key in keys}
    for name in sums:
        total = np.zeros(size, np.int64)
        np.add.at(total, group, _numbers(rows, name))
        columns[name] = pa.array(total[example >= 0])
    return pa.table(columns)


def _group(columns: Sequence[tuple[Ints, int]], rows: int) -> tuple[Ints, int]:
    """Number rows alike (int64[rows], below the second) whose codes, each below its bound, are all equal."""
    group, size = np.zeros(rows, np.int64), 1
    for codes, bound in columns:
        if bound == 1:
            continue
        group *= bound
        group += codes
        size *= bound
        if size > SLOTS:
            _, group = np.unique(group, return_inverse=True)
            size = len(group)
    return group, size


def _codes(batch: pa.RecordBatch, name: str) -> tuple[Ints, int]:
    """A text column as numbers below a bound, equal ones for equal texts."""
    column = _column(batch, name)
    coded: Any = column if pa.types.is_dictionary(column.type) else _compute.dictionary_encode(column)
    return coded.indices.to_numpy(), max(len(coded.dictionary), 1)


def _numbers(batch: pa.RecordBatch, name: str) -> Ints:
    return _column(batch, name).to_numpy()


def _column(batch: pa.RecordBatch, name: str) -> Any:
    columns: Any = batch
    column = columns.column(name)
    if column.null_count:
        raise ValueError(f"{name} is unknown in {column.null_count} rows")
    return column
