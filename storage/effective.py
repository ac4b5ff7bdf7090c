"""Effective dates: settings that hold in [from, to), one row at a time for each thing they are about."""

from __future__ import annotations

import json
import time
from typing import Any, NamedTuple

from ..errors import InputError
from ..events import CHANGES, MINUTE_NS, Change, Table
from .layout import instant_text
from .settings import Settings

_KINDS = {"rates": "rate", "capacities": "declaration", "prices": "price", "tenants": "record"}


class EffectiveError(InputError):
    """Two rows would hold at the same time, or one holds never; nothing was changed."""


class Removed(NamedTuple):
    """What taking a row back did: the row, and the one before it, which now holds in its place."""

    row: Any
    before: Any | None


class Entered(NamedTuple):
    """What entering a row did: whether the store has changed, and the open row that it ended."""

    changed: bool
    ended: Any | None


EVERY_GPU = ("any", "")
"""What the widest rate is about."""


def enter(settings: Settings, table: Table, row: Any, *, replace: bool = False) -> Entered:
    """Enter a row that holds from `row.from_ns` on; an open one in which it starts ends there.

    A row that is there already changes nothing. Raises EffectiveError when it starts or ends off whole minutes, ends
    before it begins, or shares time with another row (with `replace`, one that starts at the same instant gives way).
    """
    _check_bounds(table, row)
    others = [other for other in settings.all(table) if subject(table, other) == subject(table, row)]
    if row in others:
        return Entered(False, None)
    ended = None
    for other in others:
        if other.from_ns == row.from_ns and replace:
            _keep_change(settings, table, other, row, "replaced")
        elif other.to_ns is None and other.from_ns < row.from_ns:
            ended = other._replace(to_ns=row.from_ns)
        elif _share_time(other, row):
            raise EffectiveError(_conflict(table, row, other))
    if ended is not None:
        settings.put(table, ended)
    settings.put(table, row)
    return Entered(True, ended)


def end(settings: Settings, table: Table, about: tuple[Any, ...], at_ns: int) -> Any:
    """End the row about a subject that holds at an instant; returns it as it is now. The change is kept.

    Raises EffectiveError when none holds then, or the instant is off whole minutes.
    """
    for row in settings.all(table):
        if subject(table, row) == about and row.from_ns < at_ns and (row.to_ns is None or at_ns <= row.to_ns):
            ended = row._replace(to_ns=at_ns)
            _check_bounds(table, ended)
            settings.put(table, ended)
            if ended != row:
                _keep_change(settings, table, row, ended, "ended")
            return ended
    raise EffectiveError(f"no {kind(table)} for {name(about)} holds before {instant_text(at_ns)}")


def remove(settings: Settings, table: Table, about: tuple[Any, ...], from_ns: int, reason: str) -> Removed:
    """Take back the row about a subject that holds since an instant, as if it had never been entered.

    Where another one ends there, that one holds in its place, until the row's end. Both changes are kept with the
    reason. Raises EffectiveError when no row begins then.
    """
    rows = {row.from_ns: row for row in settings.all(table) if subject(table, row) == about}
    row = rows.get(from_ns)
    if row is None:
        raise EffectiveError(f"no {kind(table)} for {name(about)} begins at {instant_text(from_ns)}: {_begins(rows)}")
    settings.remove(table, [getattr(row, column) for column in table.key])
    _keep_change(settings, table, row, None, reason)
    ended = next((other for other in rows.values() if other.to_ns == from_ns), None)
    if ended is None:
        return Removed(row, None)
    longer = ended._replace(to_ns=row.to_ns)
    settings.put(table, longer)
    _keep_change(settings, table, ended, longer, reason)
    return Removed(row, longer)


def subject(table: Table, row: Any) -> tuple[Any, ...]:
    """What a row is about: its key without the start."""
    return tuple(getattr(row, column) for column in table.key if column != "from_ns")


def name(about: tuple[Any, ...]) -> str:
    """A subject in words."""
    if about == EVERY_GPU:
        return "any GPU"
    return " ".join(str(part) for part in about if part) or "everything"


def span(row: Any) -> str:
    """When a row holds, in words."""
    start = "the beginning" if row.from_ns == 0 else instant_text(row.from_ns)
    return f"since {start}" if row.to_ns is None else f"from {start} to {instant_text(row.to_ns)}"


def _begins(starts: dict[int, Any]) -> str:
    known = ", ".join("the beginning" if at == 0 else instant_text(at) for at in sorted(starts))
    return f"they begin at {known}" if known else "there is none"


def _keep_change(settings: Settings, table: Table, before: Any, after: Any | None, reason: str) -> None:
    about = name(subject(table, before))
    texts = [None if row is None else json.dumps(row._asdict(), ensure_ascii=False) for row in (before, after)]
    settings.put(CHANGES, Change(time.time_ns(), table.name, about, before.from_ns, texts[0] or "", texts[1], reason))


def _check_bounds(table: Table, row: Any) -> None:
    for at_ns in (row.from_ns, row.to_ns):
        if at_ns is not None and at_ns % MINUTE_NS:
            raise EffectiveError(
                f"a {kind(table)} starts and ends on whole minutes, because the ledger is kept by the minute;"
                f" {instant_text(at_ns)} is none"
            )
    if row.to_ns is not None and row.to_ns <= row.from_ns:
        raise EffectiveError(f"the {kind(table)} for {name(subject(table, row))} must end after it starts")


def _share_time(a: Any, b: Any) -> bool:
    return (b.to_ns is None or a.from_ns < b.to_ns) and (a.to_ns is None or b.from_ns < a.to_ns)


def _conflict(table: Table, row: Any, other: Any) -> str:
    about = name(subject(table, row))
    hint = ""
    if other.from_ns > row.from_ns and row.to_ns is None:
        hint = f": end the new one there (--to {instant_text(other.from_ns)})"
    elif other.from_ns == row.from_ns:
        hint = ": replace it with --replace"
    return f"there is a {kind(table)} for {about} already that holds {span(other)}{hint}"


def kind(table: Table) -> str:
    """One row of a table, in a word."""
    return _KINDS.get(table.name, table.name)
