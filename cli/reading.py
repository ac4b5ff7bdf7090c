"""Reading a store for a command: warnings go to standard error, data to a file that is whole or not there."""

from __future__ import annotations

import os
import secrets
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from ..errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from ..storage.reading import StoreReader


FORMATS = ("parquet", "csv", "json")
"""Formats of files of rows."""


@contextmanager
def reading(store: Path) -> Generator[StoreReader, None, None]:
    """A store that is open for reading; what could not be read is told at the end."""
    from ..storage.reading import open_store
    from ..storage.source import MissingRowsWarning

    with open_store(store) as opened, warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingRowsWarning)
        try:
            yield opened
        finally:
            for warning in opened.warnings:
                click.echo(f"warning: {warning}", err=True)


def check_file(form: str, output: Path | None) -> None:
    """InputError for a format that standard output has no place for."""
    if form == "parquet" and output is None:
        raise InputError("--format parquet writes a file: name it with -o FILE")


def write_rows(rows: pa.RecordBatchReader, form: str, output: Path | None) -> None:
    """Write rows in one of the FORMATS, batch by batch, to a file or to standard output."""
    from ..storage.rowfiles import FORMATS as FILES

    with whole_file(output) as file:
        written = FILES[form](file, rows.schema)
        for batch in rows:
            written.write(batch)
        written.close()


@contextmanager
def whole_file(path: Path | None) -> Generator[IO[bytes], None, None]:
    """A file that gets its name when all of it is written, readable by its owner; None: standard output."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    unborn = path.with_name(f".tmp-{path.name}-{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(unborn, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unborn.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    finally:
        unborn.unlink(missing_ok=True)
