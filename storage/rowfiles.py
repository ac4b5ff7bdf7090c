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
        kinds: list[Any] = schema.types
        self._floats = [name for name, kind in zip(schema.names, kinds, strict=True) if pa.types.is_floating(kind)]
        self._opened = False

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows."""
        for row in batch.to_pylist():
            for name in self._floats:
                row[name] = row[name] if row[name] is not None and math.isfinite(row[name]) else None
            text = json.dumps(row, ensure_ascii=False, default=_json)
            self.file.write((",\n" if self._opened else "[\n").encode() + text.encode("utf-8", "surrogatepass"))
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


def _cell(value: Any) -> Any:
    if isinstance(value, datetime | date):
        return value.isoformat()
    return json.dumps(value, ensure_ascii=False, default=_json) if isinstance(value, list | dict) else value


def _json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else str(value)
    return value.isoformat() if isinstance(value, datetime | date) else str(value)
