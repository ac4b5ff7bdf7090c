"""Records of CSV and JSON files, one by one, with their line numbers."""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, cast

from ...errors import InputError
from ..usage.fields import Json
from .found import Beginning, Context, Line, RowError, Thing

_SHOWN = 2000


class Record(NamedTuple):
    """One record: its line (or its number in a JSON list), its text, its fields or what is wrong with it."""

    number: int
    text: str
    fields: Json | RowError


def records(path: Path) -> Iterator[Record]:
    """The records of a file: rows of CSV under a header, lines of JSON, or the objects in one JSON document.

    Raises `InputError` for a file that cannot be read at all.
    """
    with _open(path) as file:
        first = next((line for line in file if line.strip()), "")
        file.seek(0)
        if first.lstrip()[:1] not in ("{", "["):
            yield from _rows(path, file)
        elif _is_object(first):
            yield from _lines(file)
        else:
            yield from _document(path, file.read())


def beginning(path: Path) -> Beginning:
    """How a file begins."""
    try:
        first = [record.fields for record in islice(records(path), 20) if not isinstance(record.fields, RowError)]
    except InputError:
        first = []
    return Beginning(path, first)


def lines_of(path: Path, context: Context, read: Callable[[Json, Context], Thing]) -> Iterator[Line]:
    """Read a file record by record; one that is of no use says why, the others go on."""
    for number, text, fields in records(path):
        try:
            thing = fields if isinstance(fields, RowError) else read(fields, context)
        except RowError as error:
            thing = error
        yield Line(number, text, thing)


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text, from 1."""
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            yield number, line.rstrip("\r\n")


@contextmanager
def unpacked(path: Path) -> Generator[Path]:
    """The file itself or, of gzip, an unpacked copy that lasts as long: for readers that need a plain file."""
    with _reading(path):
        if not _is_packed(path):
            yield path
            return
        with TemporaryDirectory() as folder:
            plain = Path(folder) / path.name.removesuffix(".gz")
            with gzip.open(path) as source, plain.open("wb") as copy:
                shutil.copyfileobj(source, copy)
            yield plain


@contextmanager
def _open(path: Path) -> Generator[Any]:
    """A file's text, unpacked where it is gzip; `InputError` when it cannot be read to its end."""
    with _reading(path):
        opener: Any = gzip.open if _is_packed(path) else open
        with opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as text:
            yield text


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def _reading(path: Path) -> Generator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{path}: cannot be read: {reason}") from None


def _rows(path: Path, file: Any) -> Iterator[Record]:
    csv.field_size_limit(2**26)
    rows = csv.reader(file, skipinitialspace=True)
    try:
        names = [name.strip() for name in next(rows, cast("list[str]", []))]
        for row in rows:
            if not row or row == names:
                continue
            text = ",".join(row)[:_SHOWN]
            if len(row) != len(names):
                yield Record(rows.line_num, text, RowError(f"{len(row)} cells under {len(names)} columns"))
            else:
                yield Record(rows.line_num, text, dict(zip(names, row, strict=True)))
    except csv.Error as error:
        raise InputError(f"{path}: line {rows.line_num}: not CSV: {error}") from None


def _lines(file: Any) -> Iterator[Record]:
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield Record(number, line.strip()[:_SHOWN], _object(line))


def _document(path: Path, text: str) -> Iterator[Record]:
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}") from None
    listed = cast("list[Any]", found) if isinstance(found, list) else [found]
    for number, each in enumerate(listed, start=1):
        fields = cast("Json", each) if isinstance(each, dict) else RowError("not a JSON object")
        yield Record(number, json.dumps(each)[:_SHOWN], fields)


def _is_object(line: str) -> bool:
    return not isinstance(_object(line), RowError)


def _object(line: str) -> Json | RowError:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return RowError("not JSON")
    return cast("Json", found) if isinstance(found, dict) else RowError("not a JSON object")
