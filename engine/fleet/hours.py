"""Hours: when a replica is up, as people write it: windows of local time on some days of the week."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
ALL_DAYS = "mon-sun"
_DAY_MINUTES = 24 * 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WINDOW = re.compile(r"(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})")
_ENDLESS_NS = 8 * 86_400_000_000_000
"""Hours repeat every week, so what is up for longer than a week never closes."""


class Shift(NamedTuple):
    """A stretch of time in which a replica is up, [start, end) in UTC ns; an end of None: for good."""

    start_ns: int
    end_ns: int | None


@dataclass(frozen=True)
class Hours:
    """Opening hours: `windows` are minutes of a local day, [start, end), an end beyond 24 h falls on the day after."""

    windows: tuple[tuple[int, int], ...]
    weekdays: tuple[int, ...]
    """Days on which a window may start, Monday is 0."""
    tz: str

    @classmethod
    def parse(cls, hours: str, weekdays: str = ALL_DAYS, tz: str = "UTC") -> Hours:
        """Read `07:00-12:00, 13:00-20:00` on `mon-fri, sun` in an IANA zone; ValueError says what is wrong."""
        zone_of(tz)
        return cls(tuple(sorted(_windows(hours))), tuple(sorted(set(_weekdays(weekdays)))), tz)

    def shifts(self, from_ns: int) -> Iterator[Shift]:
        """The shifts that end after `from_ns`, in order and without end. Windows that touch are one shift."""
        start_ns = end_ns = None
        for opens_ns, closes_ns in self._openings(from_ns):
            if start_ns is None or end_ns is None:
                start_ns, end_ns = opens_ns, closes_ns
            elif opens_ns <= end_ns:
                end_ns = max(end_ns, closes_ns)
            else:
                yield Shift(start_ns, end_ns)
                start_ns, end_ns = opens_ns, closes_ns
            if end_ns - start_ns > _ENDLESS_NS:
                yield Shift(start_ns, None)
                return

    def _openings(self, from_ns: int) -> Iterator[tuple[int, int]]:
        """Every window that closes after `from_ns`, UTC ns, from those on that began on the day before."""
        zone = zone_of(self.tz)
        day = (_EPOCH + timedelta(microseconds=from_ns // 1000)).astimezone(zone).date() - timedelta(days=1)
        while True:
            if day.weekday() in self.weekdays:
                for start, end in self.windows:
                    opens_ns, closes_ns = _utc_ns(day, start, zone), _utc_ns(day, end, zone)
                    if closes_ns > max(from_ns, opens_ns):
                        yield opens_ns, closes_ns
            day += timedelta(days=1)


def zone_of(tz: str) -> ZoneInfo:
    """The zone of an IANA name; ValueError for an unknown one."""
    try:
        return ZoneInfo(tz)
    except (OSError, ValueError, KeyError):
        raise ValueError(f'"{tz}" is not a known time zone: write an IANA name as Europe/Berlin or UTC') from None


def _utc_ns(day: date, minutes: int, zone: ZoneInfo) -> int:
    """A local time as UTC ns. One that the clock skips counts with the offset before, one shown twice is the first."""
    days, rest = divmod(minutes, _DAY_MINUTES)
    local = datetime(day.year, day.month, day.day) + timedelta(days=days, minutes=rest)
    return (local.replace(tzinfo=zone) - _EPOCH) // timedelta(microseconds=1) * 1000


def _windows(text: str) -> Iterator[tuple[int, int]]:
    for part in text.split(","):
        found = _WINDOW.fullmatch(part.strip())
        if found is None:
            raise ValueError(f'"{part.strip()}" is not a window of time: write it as 07:00-20:00')
        start, end = _minutes(*found.group(1, 2)), _minutes(*found.group(3, 4))
        if start == end:
            raise ValueError(f'"{part.strip()}" is no time at all: for the whole day write 00:00-24:00')
        yield start % _DAY_MINUTES, end if end > start else end + _DAY_MINUTES


def _minutes(hours: str, minutes: str) -> int:
    total = int(hours) * 60 + int(minutes)
    if int(minutes) > 59 or total > _DAY_MINUTES:
        raise ValueError(f'"{hours}:{minutes}" is not a time of day')
    return total


def _weekdays(text: str) -> Iterable[int]:
    for part in text.lower().split(","):
        first, _, last = part.strip().partition("-")
        try:
            start, end = DAYS.index(first.strip()), DAYS.index(last.strip() or first.strip())
        except ValueError:
            raise ValueError(f'"{part.strip()}" names no days: write them as mon-fri or sat,sun') from None
        yield from ((start + number) % 7 for number in range((end - start) % 7 + 1))
