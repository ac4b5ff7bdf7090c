"""The text of a table that a user names: a file or standard input."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click

from ..errors import InputError


@contextmanager
def table_text(file: Path) -> Generator[IO[str]]:
    """Lines of a UTF-8 CSV file, of standard input for `-`; raises InputError for bytes that are no text."""
    try:
        with click.open_file(str(file), encoding="utf-8-sig") as lines:
            yield lines
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not a UTF-8 text file ({error.reason})") from error
