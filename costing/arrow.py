"""Arrow tables as numpy columns and back: the one place where costing touches loosely typed Arrow calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .segments import Bools, Ints

_compute: Any = pc


def ints(table: pa.Table, name: str, error: type[Exception] = ValueError) -> Ints:
    """An integer column as int64[rows]; raises `error` where a value is null."""
    column: Any = table.column(name)
    if column.null_count:
        raise error(f"{name} is unknown in {column.null_count} rows")
    return column.to_numpy()


def counts(table: pa.Table, name: str, error: type[Exception] = ValueError) -> Ints:
    """Like `ints`; raises `error` where a value is negative, too."""
    values = ints(table, name, error)
    if len(values) and int(values.min()) < 0:
        raise error(f"{name} is negative in row {int(np.argmin(values))}")
    return values


def equals(table: pa.Table, name: str, text: str) -> Bools:
    """Where a text column holds `text` (bool[rows])."""
    return _compute.equal(table.column(name), text).to_numpy()


def is_one_of(table: pa.Table, name: str, texts: Sequence[str]) -> Bools:
    """Where a text column holds one of `texts` (bool[rows])."""
    return _compute.is_in(table.column(name), value_set=pa.array(texts, pa.string())).to_numpy()


def ranks(table: pa.Table, name: str) -> Ints:
    """Each text's rank among the column's distinct texts (int64[rows]), in code point order."""
    column: Any = table.column(name)
    distinct: Any = _compute.unique(column)
    return _compute.index_in(column, value_set=distinct.take(_compute.sort_indices(distinct))).to_numpy()


def codes(table: pa.Table, name: str, vocabulary: Sequence[str]) -> Ints:
    """Each text's place in `vocabulary` (int64[rows]), −1 where it is not in there."""
    column: Any = table.column(name)
    found: Any = _compute.index_in(column, value_set=pa.array(vocabulary, pa.string()))
    return _compute.fill_null(found, -1).to_numpy().astype(np.int64)


def coded(table: pa.Table, name: str) -> tuple[Ints, list[str]]:
    """A text column without nulls as codes (int64[rows]) and what they stand for, of which some may not occur."""
    column: Any = table.column(name)
    if not pa.types.is_dictionary(column.type):
        column = _compute.dictionary_encode(column)
    if not len(column):
        return np.zeros(0, np.int64), []
    whole = column.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if hasattr(whole, "chunk") else whole
    return whole.indices.to_numpy().astype(np.int64), whole.dictionary.to_pylist()


def texts(table: pa.Table, name: str, rows: Ints) -> pa.ChunkedArray[Any]:
    """A text column at `rows`, as an Arrow column."""
    column: Any = table.column(name)
    return column.take(pa.array(rows))


def pick(table: pa.Table, rows: Ints) -> pa.Table:
    """The table's rows at `rows` (int64[rows])."""
    indices: Any = pa.array(rows)
    return table.take(indices)


def words(vocabulary: Sequence[str], codes: Ints) -> pa.Array[Any]:
    """An Arrow text column that spells `codes` (int64[rows]) with `vocabulary`."""
    spelled: Any = pa.array(vocabulary, pa.string())
    return spelled.take(pa.array(codes))


def same(text: str, size: int) -> pa.Array[Any]:
    """An Arrow text column of `size` times `text`."""
    return words([text], np.zeros(size, np.int64))


def fill(table: pa.Table, **columns: Ints) -> pa.Table:
    """The table with integer columns replaced; the schema stays."""
    schema: Any = table.schema
    for name, values in columns.items():
        index = schema.get_field_index(name)
        table = table.set_column(index, schema.field(index), pa.array(values))
    return table


def total_by(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Sum all other columns (integers) over rows with equal `keys`; columns keep their names and order."""
    sums = [name for name in table.column_names if name not in keys]
    grouped: Any = table.group_by(list(keys), use_threads=False)
    totals: Any = grouped.aggregate([(name, "sum") for name in sums])
    renamed = totals.rename_columns([name.removesuffix("_sum") for name in totals.column_names])
    return renamed.select(table.column_names)


def where(table: pa.Table, rows: Bools) -> pa.Table:
    """The rows of a table where `rows` (bool[rows]) is true."""
    return table.filter(pa.array(rows))
