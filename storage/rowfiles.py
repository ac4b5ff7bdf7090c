"""Rows as files that programs read: CSV, JSON and Parquet, batch by batch in bounded memory."""

from __future__ import annotations

import csv
import io
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq


class RowFile(ABC):
    """Writes batches of one schema to a binary file; `close` finishes it and leaves the file open."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self.file, self.schema = file, schema

    @abstractmethod
    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""

    @abstractmethod
    def close(self) -> None:
        """Write what comes after the last row."""


class CsvFile(RowFile):
    """A head, then one line per row: null is empty, lists are JSON text, instants are ISO 8601."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        super().__init__(file, schema)
        self._write([schema.names])

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        columns: list[list[Any]] = [batch.column(i).to_pylist() for i in range(batch.num_columns)]
        self._write(zip(*(map(_cell, column) for column in columns), strict=True))

    def close(self) -> None:
        """Nothing comes after the last row."""

    def _write(self, rows: Any) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(rows)
        self.file.write(text.getvalue().encode())


class JsonFile(RowFile):
    """An array with one object per row and line; integers are exact, other decimals are texts, NaN is null."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        super().__init__(file, schema)
        names = (_text(name).replace("%", "%%") for name in schema.names)
        self._row = "{" + ", ".join(f"{name}: %s" for name in names) + "}"
        self._opened = False

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        columns = [_json_values(batch.column(i)) for i in range(batch.num_columns)]
        rows = ",\n".join(self._row % row for row in zip(*columns, strict=True))
        if rows:
            self.file.write((",\n" if self._opened else "[\n").encode() + rows.encode("utf-8", "surrogatepass"))
            self._opened = True

    def close(self) -> None:
        """End the array."""
        self.file.write(b"\n]\n" if self._opened else b"[]\n")


class ParquetFile(RowFile):
    """Parquet with the units and meanings of its columns."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        super().__init__(file, schema)
        self._writer = pq.ParquetWriter(file, schema, compression="zstd")

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Write the foot."""
        self._writer.close()


FORMATS: dict[str, Callable[[IO[bytes], pa.Schema], RowFile]] = {
    "csv": CsvFile,
    "json": JsonFile,
    "parquet": ParquetFile,
}


def _json_values(column: Any) -> list[Any]:
    """A column's values as what stands in JSON; numbers that are written alike there stay numbers."""
    kind = column.type
    if pa.types.is_integer(kind) and not column.null_count:
        return column.to_numpy(zero_copy_only=False).tolist()
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(kind):
        return [_text(value if value is not None and math.isfinite(value) else None) for value in values]
    if pa.types.is_string(kind):
        texts = {value: _text(value) for value in set(values)}
        return [texts[value] for value in values]
    return [_text(value) for value in values]


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_json)


def _cell(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return _text(value) if isinstance(value, list | dict) else value


def _json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else str(value)
    return value.isoformat() if isinstance(value, datetime | date) else str(value)
