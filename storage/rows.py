"""Records, Arrow columns and SQL rows: the same values in three shapes. Lists are JSON text in SQL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..events import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

_LISTS = ("strs", "ints")


def sql_rows(table: Table, rows: pa.Table, first_id: int) -> list[tuple[Any, ...]]:
    """Turn an Arrow table into SQL rows: an id, counted from `first_id`, and the columns of `table` in their order."""
    columns: list[Iterable[Any]] = [range(first_id, first_id + rows.num_rows)]
    for column in table.columns:
        values = _values(rows.column(column.name))
        columns.append(map(_to_json, values) if column.kind in _LISTS else values)
    return list(zip(*columns, strict=True))


def _values(column: Any) -> list[Any]:
    """An Arrow column as Python values, numbers without nulls the fast way."""
    if str(column.type) == "int64" and not column.null_count:
        return column.to_numpy().tolist()
    return column.to_pylist()


def arrow_columns(columns: Sequence[Column], rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    """Turn SQL rows, whose values are in the order of `columns`, into an Arrow batch of `schema`."""
    import pyarrow as pa

    values: list[Sequence[Any]] = list(zip(*rows, strict=True)) or [()] * len(columns)
    arrays: list[pa.Array[Any]] = [
        pa.array(map(_from_json, v) if column.kind in _LISTS else v, data_type)
        for column, v, data_type in zip(columns, values, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def projected(table: Table, names: Sequence[str]) -> pa.Schema:
    """The Arrow schema of some columns of a table, in the order of `names`."""
    import pyarrow as pa

    fields: list[pa.Field[Any]] = [table.schema.field(name) for name in names]
    return pa.schema(fields)


def coded(schema: pa.Schema) -> pa.Schema:
    """The schema with its texts as dictionaries."""
    import pyarrow as pa

    fields: list[Any] = [schema.field(name) for name in schema.names]
    code = pa.dictionary(pa.int32(), pa.string())
    return pa.schema([field.with_type(code) if field.type == pa.string() else field for field in fields])


def extent(rows: pa.Table, column: str) -> tuple[int, int]:
    """The smallest and the largest value of an integer column of at least one row."""
    import pyarrow.compute as pc

    found = pc.min_max(rows.column(column))
    return found["min"].as_py(), found["max"].as_py()


def record_values(table: Table, record: tuple[Any, ...]) -> dict[str, Any]:
    """Turn a record into named SQL values."""
    return {c.name: _to_json(v) if c.kind in _LISTS else v for c, v in zip(table.columns, record, strict=True)}


def records(table: Table, rows: Iterable[Any]) -> list[Any]:
    """Turn SQL rows, in the column order of `table`, into its records."""
    make = table.record._make
    lists = [i for i, c in enumerate(table.columns) if c.kind in _LISTS]
    if not lists:
        return [make(row) for row in rows]
    found: list[Any] = []
    for row in rows:
        values: list[Any] = list(row)
        for i in lists:
            values[i] = _from_json(values[i])
        found.append(make(values))
    return found


def _to_json(value: Sequence[Any] | None) -> str | None:
    return None if value is None else json.dumps(list(value), separators=(",", ":"))


def _from_json(text: str | None) -> tuple[Any, ...] | None:
    return None if text is None else tuple(json.loads(text))
