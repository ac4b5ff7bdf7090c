"""Parquet as the archive writes and reads it: small, self-describing, and with checksums."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple, cast
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow.fs import FileSystem

from ..events import Table

ROW_GROUP = 131_072
_BATCH = 65_536
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
_FOOT_END = 8
"""A file ends with the length of its foot and the four letters PAR1."""
_LEAF = {"int": "", "str": "", "ints": ".list.element", "strs": ".list.element"}


class Written(NamedTuple):
    """How long a file became, and the checksum of its foot."""

    bytes: int
    foot_crc: int


class FileWriter:
    """Sorted rows into a new file, row group by row group; what it is counts for nothing until it is closed."""

    def __init__(self, file: BinaryIO, table: Table) -> None:
        self._file = _Sink(file)
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

    def close(self) -> Written:
        """Write what is left and close the file."""
        try:
            self._flush()
            self._file.keep()
            if self._writer is not None:
                self._writer.close()
        finally:
            self._file.close()
        return Written(self._file.bytes, self._file.foot_crc())

    def abandon(self) -> None:
        """Let go of the file as it is."""
        self._file.close()

    def _flush(self) -> None:
        if not self._pending:
            return
        rows: Any = pa.concat_tables(self._pending)
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                cast(Any, self._file), rows.schema, store_schema=False, **_options(self._table)
            )
            plain: Any = b64encode(self._table.schema.serialize()).decode()
            self._writer.add_key_value_metadata({"ARROW:schema": plain})
        groups = max(1, rows.num_rows // ROW_GROUP)
        self._writer.write_table(rows, row_group_size=-(-rows.num_rows // groups))
        self._pending, self._pending_rows = [], 0


class _Sink:
    """What a Parquet writer writes to: it counts bytes, and remembers the last of them when told to."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._kept: bytearray | None = None
        self.bytes = 0

    def keep(self) -> None:
        """Remember what is written from now on: the foot."""
        self._kept = bytearray()

    def write(self, data: bytes) -> int:
        """Hand on, all of it."""
        if self._kept is not None:
            self._kept += data
        self.bytes += len(data)
        self._file.write(data)
        return len(data)

    def tell(self) -> int:
        """How much was written."""
        return self.bytes

    def flush(self) -> None:
        """The file has a buffer, and is flushed when it is closed."""

    @property
    def closed(self) -> bool:
        """Whether it takes no more."""
        return self._file.closed

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def foot_crc(self) -> int:
        """The checksum of the foot, once it is written."""
        kept = bytes(self._kept or b"")
        return crc32(kept[-(_FOOT_END + foot_length(kept[-_FOOT_END:])) :])


def foot_length(end: bytes) -> int:
    """How long the foot is that comes before a file's last eight bytes."""
    return int.from_bytes(end[:4], "little")


def read_foot_crc(filesystem: FileSystem, path: str) -> int:
    """The checksum of a file's foot; raises OSError when it cannot be read."""
    with filesystem.open_input_file(path) as file:
        size: int = file.size()
        file.seek(max(0, size - _FOOT_END))
        length = min(size, _FOOT_END + foot_length(file.read()))
        file.seek(size - length)
        return crc32(file.read())


def write_file(file: BinaryIO, table: Table, rows: pa.Table) -> Written:
    """Write sorted rows into a new file and close it."""
    writer = FileWriter(file, table)
    writer.write(rows)
    return writer.close()


def scan_file(
    filesystem: FileSystem,
    path: str,
    schema: pa.Schema,
    names: Sequence[str] | None = None,
    condition: pc.Expression | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a file that meet a condition, in batches of `schema`; a column that the file lacks is null.

    Raises OSError or pa.ArrowException when the file is missing or damaged.
    """
    types: dict[str, Any] = dict(zip(schema.names, schema.types, strict=True))
    coded = [name for name, kind in types.items() if pa.types.is_dictionary(kind)]
    options = ds.ParquetReadOptions(dictionary_columns=coded)
    file_format = ds.ParquetFileFormat(read_options=options, default_fragment_scan_options=_CHECKED)
    dataset = ds.dataset([path], schema=schema, format=file_format, filesystem=filesystem)
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
