"""Hours of a fleet: local windows as stretches of UTC."""

from datetime import UTC, datetime
from itertools import islice

import pytest

from farebox.engine.fleet.hours import Hours, Shift


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


def shifts(hours: Hours, since: str, count: int) -> list[tuple[str, str]]:
    found = islice(hours.shifts(ns(since)), count)
    return [tuple(f"{datetime.fromtimestamp(at // 10**9, UTC):%m-%dT%H:%M}" for at in shift) for shift in found]


def test_office_hours_skip_the_weekend_and_follow_the_clock_change():
    office = Hours.parse("07:00-20:00", "mon-fri", "Europe/Berlin")
    assert shifts(office, "2026-03-26T12:00", 4) == [
        ("03-26T06:00", "03-26T19:00"),  # Thursday, winter time
        ("03-27T06:00", "03-27T19:00"),
        ("03-30T05:00", "03-30T18:00"),  # Monday, summer time
        ("03-31T05:00", "03-31T18:00"),
    ]


def test_a_night_ends_on_the_day_after():
    night = Hours.parse("22:00-06:00", "fri")
    assert shifts(night, "2026-01-03T05:59", 2) == [("01-02T22:00", "01-03T06:00"), ("01-09T22:00", "01-10T06:00")]
    assert shifts(night, "2026-01-03T06:00", 1) == [("01-09T22:00", "01-10T06:00")]


def test_windows_that_touch_are_one_shift():
    split = Hours.parse("13:00-24:00, 00:00-02:00, 07:00-13:00")
    assert shifts(split, "2026-01-01T03:00", 2) == [("01-01T07:00", "01-02T02:00"), ("01-02T07:00", "01-03T02:00")]


def test_what_never_closes_is_one_shift_without_an_end():
    assert list(Hours.parse("00:00-24:00").shifts(ns("2026-01-02T10:00"))) == [Shift(ns("2026-01-02T00:00"), None)]


def test_an_hour_that_the_clock_skips_or_repeats_is_no_trouble():
    early = Hours.parse("02:30-03:30", tz="Europe/Berlin")
    assert shifts(early, "2026-03-28T12:00", 1) == [("03-30T00:30", "03-30T01:30")]  # 29th: from 03:30 to 03:30
    assert shifts(early, "2026-10-24T12:00", 1) == [("10-25T00:30", "10-25T02:30")]


@pytest.mark.parametrize(
    ("hours", "weekdays", "tz", "message"),
    [
        ("7-20", "mon-fri", "UTC", "write it as 07:00-20:00"),
        ("07:00-07:00", "mon", "UTC", "no time at all"),
        ("07:00-25:00", "mon", "UTC", "not a time of day"),
        ("07:61-08:00", "mon", "UTC", "not a time of day"),
        ("07:00-20:00", "monday", "UTC", "write them as mon-fri"),
        ("07:00-20:00", "mon", "Europe/Atlantis", "IANA"),
    ],
)
def test_what_is_no_time_is_refused(hours, weekdays, tz, message):
    with pytest.raises(ValueError, match=message):
        Hours.parse(hours, weekdays, tz)
