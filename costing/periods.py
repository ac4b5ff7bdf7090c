"""Periods: the months, days and hours that a bill is for, in the zone of the people who pay it.

A period is bounded by local midnights, kept as UTC instants, and half-open: [from, to).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ..errors import InputError
from ..events import MINUTE_NS
from .rating import HOUR_NS

SECOND_NS = 1_000_000_000
FIRST_YEAR, LAST_YEAR = 1970, 2260
_NAME = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")


class PeriodError(InputError):
    """A period, zone or instant that cannot be understood."""


class Span(NamedTuple):
    """A named stretch of time, [from, to) in UTC ns."""

    name: str
    from_ns: int
    to_ns: int


class Period(NamedTuple):
    """A named stretch of time in a zone, [from, to) in UTC ns, on whole minutes."""

    name: str
    tz: str
    from_ns: int
    to_ns: int

    @classmethod
    def parse(cls, text: str, tz: str = "UTC") -> Period:
        """A year, month or day ("2026", "2026-10", "2026-10-05") between local midnights of an IANA zone."""
        found = _NAME.fullmatch(text.strip())
        if not found:
            raise PeriodError(f"{text!r} is not a period: write a year, month or day as 2026, 2026-10 or 2026-10-05")
        year, month, day = found.groups(default="")
        try:
            first = date(int(year), int(month or 1), int(day or 1))
        except ValueError:
            raise PeriodError(f"{text!r} is not in the calendar") from None
        if not FIRST_YEAR <= first.year <= LAST_YEAR:
            raise PeriodError(f"{text!r} is not a period that can be billed: years go from {FIRST_YEAR} to {LAST_YEAR}")
        after = _day_after(first, bool(month), bool(day))
        zone = zone_of(tz)
        return cls.between(midnight_ns(first, zone), midnight_ns(after, zone), tz, found.group())

    @classmethod
    def between(cls, from_ns: int, to_ns: int, tz: str = "UTC", name: str | None = None) -> Period:
        """The period [from, to) of UTC ns; named by its ends unless `name` says otherwise.

        Raises PeriodError unless it starts and ends on whole minutes, the end after the start.
        """
        zone_of(tz)
        if from_ns % MINUTE_NS or to_ns % MINUTE_NS:
            raise PeriodError("a period starts and ends on whole minutes")
        if to_ns <= from_ns:
            raise PeriodError(f"a period ends after it starts: {utc_text(from_ns)} to {utc_text(to_ns)} does not")
        return cls(name or f"{utc_text(from_ns)}/{utc_text(to_ns)}", tz, from_ns, to_ns)

    def days(self) -> tuple[Span, ...]:
        """The local days within, clipped to the period."""
        return _days(self)

    def hours(self) -> tuple[Span, ...]:
        """The local clock hours within, clipped, each named with its offset so that a repeated hour stays apart."""
        return _hours(self)


@lru_cache(maxsize=64)
def _days(period: Period) -> tuple[Span, ...]:
    starts = _midnights(period.from_ns, zone_of(period.tz))
    return tuple(_cut(period, starts, lambda at: at.date().isoformat()))


@lru_cache(maxsize=4)
def _hours(period: Period) -> tuple[Span, ...]:
    starts = _hour_starts(period.from_ns, zone_of(period.tz))
    return tuple(_cut(period, starts, lambda at: at.isoformat(timespec="minutes")))


def _cut(period: Period, starts: Iterator[int], name: Callable[[datetime], str]) -> Iterator[Span]:
    zone = zone_of(period.tz)
    start = next(starts)
    for after in starts:
        if after > start:
            yield Span(name(local(start, zone)), max(start, period.from_ns), min(after, period.to_ns))
        if after >= period.to_ns:
            return
        start = after


def zone_of(tz: str) -> ZoneInfo:
    """The zone of an IANA name; raises PeriodError for a name that is not known."""
    try:
        return ZoneInfo(tz)
    except (OSError, ValueError, KeyError):
        raise PeriodError(f"{tz!r} is not a known time zone: write an IANA name as Europe/Berlin or UTC") from None


def midnight_ns(day: date, zone: ZoneInfo) -> int:
    """The first instant of a local day, UTC ns; of a midnight that the clock shows twice, the first."""
    return _utc_ns(datetime(day.year, day.month, day.day, tzinfo=zone))


def instant_ns(text: str, tz: str = "UTC") -> int:
    """A date (its local midnight in `tz`) or an instant with a zone ("2026-10-05T09:00+02:00") as UTC ns."""
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise PeriodError(f"{text!r} is neither a date nor an instant: write 2026-10-05 or 2026-10-05T09:00Z") from None
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text.strip()):
        return midnight_ns(at.date(), zone_of(tz))
    if at.tzinfo is None:
        raise PeriodError(f"{text!r} needs a zone: write {text.strip()}Z or an offset as +02:00")
    return _utc_ns(at)


def local(at_ns: int, zone: ZoneInfo) -> datetime:
    """UTC ns on the wall clock of a zone, to the second."""
    return datetime.fromtimestamp(at_ns // SECOND_NS, zone)


def local_text(at_ns: int, tz: str) -> str:
    """UTC ns as YYYY-MM-DD HH:MM:SS on the clock of a zone."""
    return local(at_ns, zone_of(tz)).strftime("%Y-%m-%d %H:%M:%S")


def utc_text(at_ns: int) -> str:
    """UTC ns as YYYY-MM-DDTHH:MM:SSZ."""
    return datetime.fromtimestamp(at_ns // SECOND_NS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _day_after(first: date, has_month: bool, has_day: bool) -> date:
    if has_day:
        return first + timedelta(days=1)
    if has_month:
        return (first + timedelta(days=31)).replace(day=1)
    return first.replace(year=first.year + 1)


def _utc_ns(at: datetime) -> int:
    since = at.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * SECOND_NS + since.microseconds * 1000


def _midnights(from_ns: int, zone: ZoneInfo) -> Iterator[int]:
    """The start of the local day that holds `from_ns`, and of each day after it."""
    day = local(from_ns, zone).date()
    while True:
        yield midnight_ns(day, zone)
        day += timedelta(days=1)


def _hour_starts(from_ns: int, zone: ZoneInfo) -> Iterator[int]:
    """The start of the local clock hour that holds `from_ns`, and of each hour after it."""
    at = from_ns - (local(from_ns, zone).minute * MINUTE_NS + from_ns % MINUTE_NS)
    while True:
        yield at
        after = at + HOUR_NS
        at = after - local(after, zone).minute * MINUTE_NS
