"""JSON as recordings have it: lines and documents, numbers exact."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, cast

from .errors import RecordingError

Fields = dict[str, Any]


def read_lines(path: Path) -> Iterator[tuple[int, Fields]]:
    """The objects of a JSON-lines file with their line numbers; fractions are Decimals.

    Raises:
        RecordingError: a line that is no JSON object.
        OSError: the file cannot be read.
    """
    with path.open(encoding="utf-8-sig") as lines:
        try:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, _object(path, number, line)
        except UnicodeDecodeError as error:
            raise RecordingError(path, None, f"not a UTF-8 text file ({error.reason})") from error


def read_document(path: Path) -> Fields:
    """The one object that a JSON file holds; see `read_lines`."""
    try:
        return _object(path, None, path.read_text("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RecordingError(path, None, f"not a UTF-8 text file ({error.reason})") from error


def _object(path: Path, number: int | None, text: str) -> Fields:
    try:
        value = json.loads(text, parse_float=Decimal)
    except (json.JSONDecodeError, RecursionError, InvalidOperation, ValueError) as error:
        raise RecordingError(path, number, f"not JSON ({error})") from error
    if not isinstance(value, dict):
        raise RecordingError(path, number, "not a JSON object")
    return cast("Fields", value)
