"""Periods: local midnights, the hours that clocks skip or repeat, and what is refused."""

from datetime import date, timedelta
from itertools import pairwise

import pytest
from costing_books import DAY, HOUR, at
from hypothesis import given
from hypothesis import strategies as st

from farebox.costing.periods import Period, PeriodError, instant_ns, midnight_ns, zone_of

ZONES = [
    "UTC",
    "America/New_York",
    "Europe/Berlin",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "Pacific/Apia",
    "America/Havana",
]


@pytest.mark.parametrize(
    ("zone", "month", "hours"),
    [
        ("America/New_York", "2026-03", 743),
        ("America/New_York", "2026-11", 721),
        ("Europe/Berlin", "2026-03", 743),
        ("Europe/Berlin", "2026-10", 745),
        ("UTC", "2026-11", 720),
    ],
)
def test_months_have_the_hours_of_their_zone(zone, month, hours):
    period = Period.parse(month, zone)
    assert period.to_ns - period.from_ns == hours * HOUR
    assert len(period.hours()) == hours
    assert len({hour.name for hour in period.hours()}) == hours


def test_a_period_is_a_year_a_month_or_a_day():
    assert Period.parse("2026")[2:] == (at("2026-01-01"), at("2027-01-01"))
    assert Period.parse("2026-12")[2:] == (at("2026-12-01"), at("2027-01-01"))
    assert Period.parse("2026-10-05", "Asia/Kolkata")[2:] == (at("2026-10-04T18:30"), at("2026-10-05T18:30"))


@given(st.dates(date(1975, 1, 1), date(2030, 12, 1)), st.sampled_from(ZONES), st.integers(1, 70))
def test_days_and_hours_fill_a_period_without_gap_or_overlap(first, zone, length):
    start, end = (midnight_ns(day, zone_of(zone)) for day in (first, first + timedelta(days=length)))
    period = Period.between(start, end, zone)
    for spans in (period.days(), period.hours()):
        assert (spans[0].from_ns, spans[-1].to_ns) == (start, end)
        assert all(earlier.to_ns == later.from_ns for earlier, later in pairwise(spans))
        assert all(span.to_ns > span.from_ns for span in spans)
    assert period.days()[0].name == first.isoformat()


def test_a_day_that_a_zone_skipped_is_no_day():
    start, end = (midnight_ns(date(2011, 12, day), zone_of("Pacific/Apia")) for day in (29, 31))
    assert [day.name for day in Period.between(start, end, "Pacific/Apia").days()] == ["2011-12-29"]


def test_days_are_clipped_to_the_period():
    noon = at("2026-05-01T12:00")
    days = Period.between(noon, noon + DAY).days()
    assert [(day.name, day.to_ns - day.from_ns) for day in days] == [("2026-05-01", DAY // 2), ("2026-05-02", DAY // 2)]


@pytest.mark.parametrize(
    "text", ["", "26", "2026-13", "2026-02-30", "2026-1", "October", "0001", "9999", "2026-10-05T1"]
)
def test_what_is_no_period_is_refused(text):
    with pytest.raises(PeriodError):
        Period.parse(text)


@pytest.mark.parametrize("zone", ["", "Mars/Phobos", "../etc/passwd", "berlin time"])
def test_unknown_zones_are_refused(zone):
    with pytest.raises(PeriodError, match="not a known time zone"):
        Period.parse("2026", zone)


def test_a_period_is_whole_minutes_and_not_empty():
    with pytest.raises(PeriodError, match="whole minutes"):
        Period.between(1, HOUR)
    with pytest.raises(PeriodError, match="after it starts"):
        Period.between(HOUR, HOUR)


def test_dates_are_local_midnights_and_instants_need_a_zone():
    assert instant_ns("2026-10-05", "Europe/Berlin") == at("2026-10-04T22:00")
    assert instant_ns("2026-10-05T09:00+02:00") == at("2026-10-05T07:00")
    for text in ("2026-10-05T09:00", "soon"):
        with pytest.raises(PeriodError):
            instant_ns(text)
