"""Instants as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ..errors import InputError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc_ns(text: str) -> int:
    """An ISO 8601 instant as UTC nanoseconds, exact to the microsecond; one without a zone is refused."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is not an instant; write it as 2026-01-01T00:00:00Z") from None
    if instant.tzinfo is None:
        raise InputError(f"{text!r} has no time zone; write 2026-01-01T00:00:00Z or …+01:00")
    return (instant - _EPOCH) // timedelta(microseconds=1) * 1000


def utc_text(ns: int) -> str:
    """UTC nanoseconds as `2026-01-01 00:00:00Z`, cut to the second."""
    return (_EPOCH + timedelta(seconds=ns // 10**9)).strftime("%Y-%m-%d %H:%M:%SZ")
