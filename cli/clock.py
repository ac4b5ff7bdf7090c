"""Instants as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from ..errors import InputError

BEGINNING = ("beginning", "the beginning")
"""What holds since ever is kept as holding since 1970; lists print it so."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc_ns(text: str) -> int:
    """An ISO 8601 instant as UTC nanoseconds, exact to the microsecond; one without a zone is refused."""
    from ..engine.arrival import LATEST_NS

    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{text!r} is not an instant; write it as 2026-01-01T00:00:00Z") from None
    if instant.tzinfo is None:
        raise InputError(f"{text!r} has no time zone; write 2026-01-01T00:00:00Z or …+01:00")
    ns = (instant - _EPOCH) // timedelta(microseconds=1) * 1000
    if not 0 <= ns < LATEST_NS:
        raise InputError(f"{text!r} is not between 1970 and 2200")
    return ns


def instant(text: str, tz: str = "UTC") -> int:
    """A date (its local midnight in `tz`), an instant with a zone or "beginning" (0) as UTC ns, from 1970 to 2262."""
    from ..costing.periods import instant_ns

    if text.strip().lower() in BEGINNING:
        return 0
    at_ns = instant_ns(text, tz)
    if not 0 <= at_ns < 2**63:
        raise InputError(f"{text} is out of bounds: years go from 1970 to 2262")
    return at_ns


def utc_text(ns: int) -> str:
    """UTC nanoseconds as `2026-01-01 00:00:00Z`, cut to the second."""
    return (_EPOCH + timedelta(seconds=ns // 10**9)).strftime("%Y-%m-%d %H:%M:%SZ")
