"""Entering effective-dated settings: from options or from a CSV file, all of it or nothing."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..errors import InputError
from .clock import instant
from .listing import when

if TYPE_CHECKING:
    from ..events import Table
    from ..storage.settings import Settings

Values = dict[str, str]
_MOST_SHOWN = 20


class Columns(NamedTuple):
    """What a CSV file's head must and may name."""

    required: tuple[str, ...]
    optional: tuple[str, ...]


class Line(NamedTuple):
    """One row of a CSV file: its line number and the values that are not empty."""

    number: int
    values: Values


def start_ns(settings: Settings, table: Table, about: tuple[Any, ...], text: str | None, tz: str) -> int:
    """When a row begins: as told, or, for the first one about its subject, ever; `InputError` for a later one."""
    from ..storage.effective import kind, name, subject

    if text is not None:
        return instant(text, tz)
    if any(subject(table, row) == about for row in settings.all(table)):
        raise InputError(
            f"there is a {kind(table)} for {name(about)} already: say since when this one holds with --from"
        )
    return 0


def end_ns(text: str | None, tz: str) -> int | None:
    """When a row ends: as told, or open."""
    return None if text is None else instant(text, tz)


def enter(store: Path, table: Table, make: Callable[[Settings], Any], *, replace: bool = False) -> Any:
    """Enter the row that `make` builds from the settings, say what it ended, and return it."""
    from ..storage import effective
    from ..storage.store import open_store

    with open_store(store) as opened, opened.changing() as settings:
        row = make(settings)
        entered = effective.enter(settings, table, row, replace=replace)
    if entered.ended is not None:
        click.echo(_note(table, row), err=True)
    return row


def end(store: Path, table: Table, about: tuple[Any, ...], at: str, tz: str) -> None:
    """End the row about a subject that holds at an instant, and say so."""
    from ..storage import effective
    from ..storage.store import open_store

    at_ns = instant(at, tz)
    with open_store(store) as opened, opened.changing() as settings:
        effective.end(settings, table, about, at_ns)
    click.echo(f"{effective.name(about)} ends at {when(at_ns)}")


def _note(table: Table, row: Any) -> str:
    from ..storage import effective

    tail = "" if row.to_ns is None else f"; after {when(row.to_ns)} none holds"
    about = effective.name(effective.subject(table, row))
    return f"note: the {effective.kind(table)} for {about} that held before ends at {when(row.from_ns)}{tail}"


def import_csv(
    store: Path,
    table: Table,
    file: Path,
    columns: Columns,
    make: Callable[[Values], Sequence[Any]],
    *,
    replace: bool,
    several: str = "several for some rows",
) -> None:
    """Enter the records that `make` reads from each row; with a single bad row nothing is imported.

    `make` raises ValueError for a row that it cannot use; an InputError names every such row by its line. `several`
    says why there may be more records than rows.
    """
    from ..storage import effective
    from ..storage.store import open_store

    lines = list(_lines(file, columns))
    problems: list[str] = []
    notes: list[str] = []
    changed: list[bool] = []
    with open_store(store) as opened, opened.changing() as settings:
        for line in lines:
            try:
                for record in make(line.values):
                    entered = effective.enter(settings, table, record, replace=replace)
                    changed.append(entered.changed)
                    notes += [_note(table, record)] if entered.ended is not None else []
            except ValueError as error:
                problems.append(f"{file}:{line.number}: {error}")
        _refuse(problems)
    for note in notes:
        click.echo(note, err=True)
    known = changed.count(False)
    rows = f" from {len(lines)} row{'s' * (len(lines) > 1)} ({several})" if len(changed) > len(lines) else ""
    there = f", {known} were there already" if known else ""
    click.echo(f"{table.name}: {changed.count(True)} imported{rows}{there}")


def needed(values: Values, column: str, why: str = "") -> str:
    """A value that a row must have; raises ValueError without."""
    if column not in values:
        raise ValueError(f"no {column}{why and f': {why}'}")
    return values[column]


def span_of(values: Values, start: str, end: str) -> tuple[int, int | None]:
    """When a row holds: from ever and open unless its columns say otherwise; dates are midnights in UTC."""
    from_ns = instant(values[start]) if start in values else 0
    return from_ns, instant(values[end]) if end in values else None


def _refuse(problems: list[str]) -> None:
    more = [f"… and {len(problems) - _MOST_SHOWN} more"] if len(problems) > _MOST_SHOWN else []
    if problems:
        raise InputError("\n".join(["nothing was imported:", *problems[:_MOST_SHOWN], *more]))


def _lines(file: Path, columns: Columns) -> Iterator[Line]:
    """The rows of a CSV file with a head; raises InputError for a head or an encoding that cannot be used."""
    with file.open(encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, strict=True)
        try:
            head = [name.strip().lower() for name in next(reader, list[str]())]
            _check_head(file, head, columns)
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    yield Line(reader.line_num, _values(file, reader.line_num, head, cells))
        except (csv.Error, UnicodeDecodeError) as error:
            raise InputError(f"{file}:{reader.line_num}: this is not CSV in UTF-8: {error}") from None


def _check_head(file: Path, head: list[str], columns: Columns) -> None:
    known = (*columns.required, *columns.optional)
    missing = [name for name in columns.required if name not in head]
    unknown = [name for name in head if name not in known]
    if missing or unknown or len(set(head)) < len(head):
        wrong = f"no column {', '.join(missing)}" if missing else f"unusable columns {', '.join(unknown or head)}"
        raise InputError(
            f"{file}:1: {wrong}; the first line names the columns:"
            f" {', '.join(columns.required)} and, if needed, {', '.join(columns.optional)}"
        )


def _values(file: Path, number: int, head: list[str], cells: list[str]) -> Values:
    if len(cells) > len(head):
        raise InputError(f"{file}:{number}: {len(cells)} values for {len(head)} columns")
    return {name: cell.strip() for name, cell in zip(head, cells, strict=False) if cell.strip()}
