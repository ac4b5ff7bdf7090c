"""Damaged files of the archive: found, named in a warning, and left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from .files import Files, open_files
from .layout import Layout
from .manifest import ArchivedFile
from .parquet import read_foot_crc, scan_file
from .tables import ROLLED

if TYPE_CHECKING:
    import pyarrow.compute as pc

_SCHEMAS = {table.name: table for table in ROLLED}


def scan_checked(
    files: Files,
    file: ArchivedFile,
    schema: pa.Schema,
    names: Sequence[str] | None = None,
    condition: pc.Expression | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a file that meet a condition, in batches of `schema`.

    Raises OSError or pa.ArrowException when the file is missing or damaged.
    """
    check(files, file)
    return scan_file(files.filesystem, files.at(file.path), schema, names, condition)


def check(files: Files, file: ArchivedFile) -> None:
    """Raise OSError unless a file is there, as long as it was written, and says the same of itself.

    Pages have checksums of their own, which are looked at when they are read.
    """
    check_size(files, file)
    if file.foot_crc is not None and read_foot_crc(files.filesystem, files.at(file.path)) != file.foot_crc:
        raise OSError("its foot is not as it was written")


def check_size(files: Files, file: ArchivedFile) -> None:
    """Raise OSError unless a file is there and as long as it was written."""
    size = files.size(file.path)
    if size != file.bytes:
        raise OSError(f"it has {size} bytes instead of {file.bytes}")


def wrong_size(layout: Layout, listed: Iterable[ArchivedFile], warnings: list[str]) -> set[str]:
    """The paths of files that are missing or shorter than they were written, each named in `warnings`.

    Objects in a store are whole or missing, and asking for each takes time: those are checked when they are read.
    """
    files = open_files(layout)
    return set() if files.is_remote else _found(files, listed, warnings, check_size)


def damaged(layout: Layout, listed: Iterable[ArchivedFile], warnings: list[str]) -> set[str]:
    """The paths of files that cannot be read, each named in `warnings`: by what they say of themselves if that is
    enough, else by reading them all.
    """
    files, listed = open_files(layout), list(listed)
    return _found(files, listed, warnings, check) or _found(files, listed, warnings, _read)


def _read(files: Files, file: ArchivedFile) -> None:
    for _ in scan_checked(files, file, _SCHEMAS[file.table_name].schema):
        pass


def _found(
    files: Files, listed: Iterable[ArchivedFile], warnings: list[str], look: Callable[[Files, ArchivedFile], None]
) -> set[str]:
    found: set[str] = set()
    for file in listed:
        try:
            look(files, file)
        except (OSError, pa.ArrowException) as error:
            found.add(file.path)
            warn(files, file, error, warnings)
    return found


def warn(files: Files, file: ArchivedFile, error: Exception, warnings: list[str], rows: int = 0) -> None:
    """Name a file that could not be read, once; `rows` of it had been read before."""
    lost = "was skipped" if rows == 0 else f"was read only up to row {rows} of the answer"
    warning = f"{files.name(file.path)} {lost} ({file.rows} rows of {file.date}): {error}"
    if warning not in warnings:
        warnings.append(warning)
