"""Reading of foreign JSON: values of the kind that is expected, or None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

Json = Mapping[str, Any]
_MOST = 2**53
_NS_PER_MS = 1_000_000


def child(body: Json, *names: str) -> Json:
    """The object at a path; empty where there is none."""
    for name in names:
        body = as_object(body.get(name))
    return body


def count(body: Json, *names: str) -> int | None:
    """The first of the named values that is a count; None where none is. `true` and `12.5` are no counts, `12.0` is."""
    for name in names:
        value = body.get(name)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is int and 0 <= value < _MOST:
            return value
    return None


def ms_as_ns(body: Json, name: str) -> int | None:
    """A time in milliseconds, as nanoseconds."""
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MOST:
        return None
    return round(value * _NS_PER_MS)


def text(body: Json, *names: str) -> str | None:
    """The first of the named values that is a text and not empty."""
    return next((value for value in map(body.get, names) if isinstance(value, str) and value), None)


def objects(body: Json, name: str) -> list[Json]:
    """The objects in a list; empty where there is none."""
    return as_objects(body.get(name))


def as_object(value: object) -> Json:
    """A value that is an object; empty where it is none."""
    return cast("Json", value) if isinstance(value, Mapping) else {}


def as_objects(value: object) -> list[Json]:
    """The objects in a value that is a list; empty where it is none."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Json", each) for each in items if isinstance(each, dict)]
