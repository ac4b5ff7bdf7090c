"""Instants as people give them to Python: always a point in time, never a wall clock without a zone."""

from __future__ import annotations

import operator
import re
from datetime import UTC, date, datetime, timedelta

from ..errors import InputError

Instant = datetime | date | str | int
"""A datetime with a zone, a date (its midnight in UTC), ISO text of either, or UTC nanoseconds."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FRACTION = re.compile(r"([.,]\d{6})(\d{1,3})(?!\d)")


def instant_ns(value: Instant) -> int:
    """An instant as UTC nanoseconds, exact to the nanosecond also from text and from pandas' Timestamp.

    Raises InputError for a time without a zone, and for what is no instant within int64 nanoseconds (1677 to 2262).
    """
    at_ns = _whole_ns(value)
    if not -(2**63) <= at_ns < 2**63:
        raise InputError(f"{value!r} is out of bounds: years go from 1677 to 2262")
    return at_ns


def _whole_ns(value: Instant) -> int:
    if isinstance(value, str):
        return _text_ns(value.strip())
    if isinstance(value, datetime):
        return _datetime_ns(value) + getattr(value, "nanosecond", 0)
    if isinstance(value, date):
        return _datetime_ns(datetime(value.year, value.month, value.day, tzinfo=UTC))
    try:
        return operator.index(value)
    except TypeError:
        raise InputError(f"{value!r} is no instant: give a datetime with a zone, a date, ISO text or UTC ns") from None


def _text_ns(text: str) -> int:
    finer = _FRACTION.search(text)
    try:
        at = datetime.fromisoformat(_FRACTION.sub(r"\1", text))
    except ValueError:
        raise InputError(f"{text!r} is no instant: write 2026-10-05 or 2026-10-05T09:00Z") from None
    if re.fullmatch(r"\d{4}-?\d{2}-?\d{2}", text):
        at = at.replace(tzinfo=UTC)
    return _datetime_ns(at) + (int(finer[2].ljust(3, "0")) if finer else 0)


def _datetime_ns(at: datetime) -> int:
    if at.tzinfo is None or at.utcoffset() is None:
        raise InputError(f"{at!s} has no zone: write {at.isoformat()}Z or +02:00, or pass tzinfo=datetime.UTC")
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000
