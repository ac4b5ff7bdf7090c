"""Damaged files of the archive: found, named in a warning, and left out."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from .layout import Layout
from .manifest import ArchivedFile
from .parquet import scan_file
from .tables import ROLLED

_SCHEMAS = {table.name: table for table in ROLLED}


def check_size(layout: Layout, file: ArchivedFile) -> None:
    """Raise OSError unless a file is there and as long as it was written."""
    size = (layout.root / file.path).stat().st_size
    if size != file.bytes:
        raise OSError(f"it has {size} bytes instead of {file.bytes}")


def damaged(layout: Layout, files: Iterable[ArchivedFile], warnings: list[str], *, whole: bool) -> set[str]:
    """The paths of files that cannot be read, each named in `warnings`; `whole` reads them, else their sizes tell."""
    found: set[str] = set()
    for file in files:
        try:
            check_size(layout, file)
            if whole:
                for _ in scan_file(layout.root / file.path, _SCHEMAS[file.table_name].schema, None, None):
                    pass
        except (OSError, pa.ArrowException) as error:
            found.add(file.path)
            warn(layout, file, error, warnings)
    return found


def warn(layout: Layout, file: ArchivedFile, error: Exception, warnings: list[str], rows: int = 0) -> None:
    """Name a file that could not be read, once; `rows` of it had been read before."""
    lost = "was skipped" if rows == 0 else f"was read only up to row {rows} of the answer"
    warning = f"{layout.root / file.path} {lost} ({file.rows} rows of {file.date}): {error}"
    if warning not in warnings:
        warnings.append(warning)
