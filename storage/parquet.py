"""Parquet as the archive writes and reads it: small, self-describing, and with checksums."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ..events import Table
from .layout import open_private_file

ROW_GROUP = 131_072
_BATCH = 65_536
_CHECKED = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
_LEAF = {"int": "", "str": "", "ints": ".list.element", "strs": ".list.element"}


def write_file(path: Path, table: Table, rows: pa.Table) -> int:
    """Write sorted rows to a new private file, safe against a power cut; returns its size in bytes."""
    descriptor = open_private_file(path, os.O_WRONLY | os.O_EXCL)
    with os.fdopen(descriptor, "wb") as file:
        pq.write_table(rows, file, **_options(table))
        file.flush()
        os.fsync(file.fileno())
        return file.tell()


def scan_file(
    path: Path, schema: pa.Schema, names: Sequence[str] | None, condition: pc.Expression | None
) -> Iterator[pa.RecordBatch]:
    """The rows of a file that meet a condition, in batches of `schema`; a column that the file lacks is null.

    Raises OSError or pa.ArrowException when the file is missing or damaged.
    """
    types: dict[str, Any] = dict(zip(schema.names, schema.types, strict=True))
    coded = [name for name, kind in types.items() if pa.types.is_dictionary(kind)]
    options = ds.ParquetReadOptions(dictionary_columns=coded)
    file_format = ds.ParquetFileFormat(read_options=options, default_fragment_scan_options=_CHECKED)
    dataset = ds.dataset([str(path)], schema=schema, format=file_format)
    columns = None if names is None else list(names)
    return dataset.to_batches(
        columns=columns, filter=condition, batch_size=_BATCH, batch_readahead=4, fragment_readahead=1
    )


def _options(table: Table) -> dict[str, Any]:
    """Names repeat and share a dictionary; numbers mostly grow or vary little, so their differences are packed."""
    leaves = {c.name + _LEAF[c.kind]: c.kind for c in table.columns}
    return {
        "compression": "zstd",
        "compression_level": 3,
        "use_dictionary": [leaf for leaf, kind in leaves.items() if kind in ("str", "strs")],
        "column_encoding": {leaf: "DELTA_BINARY_PACKED" for leaf, kind in leaves.items() if kind in ("int", "ints")},
        "row_group_size": ROW_GROUP,
        "write_page_checksum": True,
    }
