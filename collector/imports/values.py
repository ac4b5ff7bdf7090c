"""Cells of foreign files as numbers and instants; what is no such thing is a `RowError` that names the column."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from ...engine.arrival import LATEST_NS
from ..usage.fields import Json, as_object
from .found import RowError

_NS_PER_S = 10**9
_NOTHING = frozenset({"", "none", "null", "nan"})


def whole(fields: Json, name: str) -> int | None:
    """A count; None for an empty cell. Raises RowError for anything else that is no whole number ≥ 0."""
    value = fields.get(name)
    if is_nothing(value):
        return None
    text = str(value).strip().removesuffix(".0")
    number = int(text) if text.isdecimal() and len(text) < 17 else -1
    if number < 0:
        raise RowError(f"{name}: {value!r} is not a count")
    return number


def instant(fields: Json, name: str, tz: str = "UTC") -> int | None:
    """An instant as UTC ns: ISO text (of `tz` where it names no zone) or seconds since 1970; None for an empty cell."""
    value = fields.get(name)
    if is_nothing(value):
        return None
    text = str(value).strip()
    try:
        at_ns = int(text) * _NS_PER_S if text.isdecimal() else _of_text(text, tz)
    except (ValueError, OverflowError):
        raise RowError(f"{name}: {value!r} is not a time") from None
    if not 0 < at_ns < LATEST_NS:
        raise RowError(f"{name}: {value!r} is not between 1970 and 2200")
    return at_ns


def required(value: int | None, name: str) -> int:
    """A value that has to be there."""
    if value is None:
        raise RowError(f"{name} is missing")
    return value


def word(fields: Json, *names: str) -> str:
    """The first of the named cells that is not empty; empty when all are. Raises RowError for a list or an object."""
    name = next((name for name in names if not is_nothing(fields.get(name))), None)
    if name is None:
        return ""
    if isinstance(fields[name], dict | list):
        raise RowError(f"{name}: {fields[name]!r:.100} is not a text")
    return str(fields[name]).strip()


def nested(fields: Json, name: str) -> Json:
    """An object, or one that is spelled as JSON text; empty where there is none."""
    value: Any = fields.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return as_object(value)


def is_nothing(value: object) -> bool:
    """Whether a cell is empty, in one of the ways in which exports say so."""
    return value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING)


def _of_text(text: str, tz: str) -> int:
    moment = datetime.fromisoformat(text.replace("/", "-"))
    moment = moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(tz))
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * _NS_PER_S + since.microseconds * 1000
