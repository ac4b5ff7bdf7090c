"""Parquet as the archive writes and reads it: small, self-describing, and with checksums."""

from __future__ import annotations

import os
from base64 import b64encode
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
_BUFFER = 1 << 20
_CHECKED = ds.ParquetFragmentScanOptions(page_checksum_verification=True)
FORMAT = ds.ParquetFileFormat(default_fragment_scan_options=_CHECKED)
"""How files of the archive are read: their checksums are looked at."""
_MOSTLY_ALIKE = {
    "idle_before_ns", "gpus", "waiting", "prefill_ns", "prefill_seqs", "prefill_tokens", "cached_tokens",
    "recomputed_tokens", "rejected_tokens", "kv_blocks_total", "preemptions",
}  # fmt: skip
_GROWING = {"step_seq", "attn", "minute_ns", "prefix_ids.list.element"}
_PACKED = {"step_seq", "started_ns"}
"""What packed differences of these leave to compress is not worth the time."""
_SQUEEZED = {"attn", "seqs", "rows", "output_tokens"}
"""Numbers of shares that zstd makes much smaller than LZ4 does, which takes less time."""
_SPANS = {"duration_ns", "decode_ns", "gpu_ns", "kv_block_ns"}
_LEAF = {"int": "", "str": "", "ints": ".list.element", "strs": ".list.element"}


class FileWriter:
    """A new private file of sorted rows, written row group by row group; it counts for nothing until it is closed."""

    def __init__(self, path: Path, table: Table) -> None:
        descriptor = open_private_file(path, os.O_WRONLY | os.O_EXCL)
        self._file = os.fdopen(descriptor, "wb", _BUFFER)
        self._table = table
        self._writer: pq.ParquetWriter | None = None
        self._pending: list[pa.Table] = []
        self._pending_rows = 0

    def write(self, rows: pa.Table) -> None:
        """Add rows; they reach the file with the next full row group. All must have their texts coded, or none."""
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        if self._pending_rows >= ROW_GROUP:
            self._flush()

    def close(self) -> int:
        """Write what is left, safe against a power cut; returns the file's size in bytes."""
        with self._file as file:
            self._flush()
            if self._writer is not None:
                self._writer.close()
            file.flush()
            os.fsync(file.fileno())
            return file.tell()

    def abandon(self) -> None:
        """Let go of the file as it is."""
        self._file.close()

    def _flush(self) -> None:
        if not self._pending:
            return
        rows: Any = pa.concat_tables(self._pending)
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, rows.schema, store_schema=False, **_options(self._table))
            plain: Any = b64encode(self._table.schema.serialize()).decode()
            self._writer.add_key_value_metadata({"ARROW:schema": plain})
        groups = max(1, rows.num_rows // ROW_GROUP)
        self._writer.write_table(rows, row_group_size=-(-rows.num_rows // groups))
        self._pending, self._pending_rows = [], 0


def write_file(path: Path, table: Table, rows: pa.Table) -> int:
    """Write sorted rows to a new private file, safe against a power cut; returns its size in bytes."""
    writer = FileWriter(path, table)
    writer.write(rows)
    return writer.close()


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
    """Names repeat and share a dictionary. Of numbers that grow differences are packed, of others the bytes are sorted
    by place; what hardly changes needs nothing but LZ4. Readers skip row groups by engine and time, so only those have
    statistics.
    """
    leaves = {c.name + _LEAF[c.kind]: c.kind for c in table.columns}
    names = [leaf for leaf, kind in leaves.items() if kind in ("str", "strs")]
    codecs = {leaf: _codec(leaf, kind) for leaf, kind in leaves.items()}
    return {
        "compression": codecs,
        "compression_level": {leaf: 1 for leaf, codec in codecs.items() if codec == "zstd"},
        "use_dictionary": names,
        "column_encoding": {leaf: _encoding(leaf) for leaf, kind in leaves.items() if kind in ("int", "ints")},
        "write_statistics": [name for name in ("engine_id", table.time) if name in leaves],
        "write_page_checksum": True,
        "write_batch_size": ROW_GROUP,
    }


def _codec(leaf: str, kind: str) -> str:
    if leaf in _PACKED:
        return "none"
    return "zstd" if leaf in _SQUEEZED or kind in ("str", "strs") else "lz4"


def _encoding(leaf: str) -> str:
    if leaf in _MOSTLY_ALIKE:
        return "PLAIN"
    grows = leaf in _GROWING or (leaf.endswith("_ns") and leaf not in _SPANS)
    return "DELTA_BINARY_PACKED" if grows else "BYTE_STREAM_SPLIT"
