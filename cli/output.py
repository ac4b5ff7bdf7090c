"""Where results go: standard output or a file, text or bytes, and never half of it without a word."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from ..errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

Found = TypeVar("Found")
PIPE_WIDTH = 120
"""Columns of what is printed where there is no terminal to ask."""


def put(data: str | bytes, output: Path | None) -> None:
    """Write data to a file or to standard output, as UTF-8 whatever the locale: data is for programs."""
    raw = data.encode() if isinstance(data, str) else data
    if output is None:
        click.echo(raw, nl=False)
        return
    try:
        output.write_bytes(raw)
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror}") from None


def show(render: Callable[[Console], None], output: Path | None = None, width: int = PIPE_WIDTH) -> None:
    """Draw on the terminal as wide as it is; into a pipe or file as plain text of a stable `width`."""
    from rich.console import Console

    if output is None and sys.stdout.isatty():
        render(Console(highlight=False))
        return
    page = io.StringIO()
    render(Console(file=page, highlight=False, width=width, force_terminal=False))
    text = "\n".join(line.rstrip(" ") for line in page.getvalue().split("\n"))
    if output is None:
        click.echo(text, nl=False)
    else:
        put(text, output)


def put_as(
    form: str,
    found: Found,
    texts: Mapping[str, Callable[[Found], str]],
    render: Callable[[Found, Console], None],
    output: Path | None,
) -> None:
    """Write what was found as one of the `texts`, by their names; drawn as a table for any other form."""
    if form in texts:
        put(texts[form](found), output)
    else:
        show(lambda console: render(found, console), output)


def forgive_locale() -> None:
    """Let a terminal or pipe that is not UTF-8 show `?` for what it cannot show, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
