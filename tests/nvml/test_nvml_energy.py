"""Energy adds up, whatever a counter does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.collector.nvml.energy import MOST_MW, EnergyMeter
from farebox.collector.nvml.reasons import Missing, missing

SECOND_NS = 10**9
DENIED, NEVER = missing("UNKNOWN"), missing("NOT_SUPPORTED")
LIMIT = 300_000
SETTINGS = tries(60)


def counted(readings, limit=LIMIT):
    """What a meter says after each reading, one a second."""
    meter = EnergyMeter()
    return [meter.add(second * SECOND_NS, value, DENIED, limit) for second, value in enumerate(readings)]


@SETTINGS
@given(st.lists(st.integers(0, LIMIT), min_size=1, max_size=30), st.integers(0, 2**50))
def test_a_counter_is_told_to_the_last_millijoule(steps, start):
    readings = [start + sum(steps[:count]) for count in range(len(steps) + 1)]
    assert counted(readings)[-1] == sum(steps)


@SETTINGS
@given(
    st.lists(st.integers(0, LIMIT), min_size=3, max_size=30),
    st.integers(10**9, 2**50),
    st.integers(1, 28),
    st.one_of(st.integers(0, 10**6), st.integers(2**55, 2**62)),
)
def test_one_odd_reading_changes_no_sum(steps, start, place, odd):
    readings = [start + sum(steps[:count]) for count in range(len(steps) + 1)]
    place = min(place, len(readings) - 2)
    found = counted([*readings[:place], odd, *readings[place + 1 :]])
    assert isinstance(found[place], Missing)
    assert found[-1] == sum(steps)


@SETTINGS
@given(st.lists(st.one_of(st.just(DENIED), st.integers(0, 2**62)), max_size=30))
def test_no_counter_makes_more_than_the_limit(readings):
    told = [value for value in counted(readings) if not isinstance(value, Missing)]
    assert told == sorted(told)
    assert all(value <= LIMIT * len(readings) * 11 // 10 for value in told)


def test_a_device_without_a_limit_is_bounded_too():
    assert counted([0, MOST_MW], None)[1] == MOST_MW
    assert isinstance(counted([0, 2 * MOST_MW], None)[1], Missing)


def power(readings):
    """The same from power in mW, at given seconds."""
    meter = EnergyMeter()
    return [meter.add(int(second * SECOND_NS), NEVER, value, LIMIT) for second, value in readings]


def test_time_without_a_power_reading_is_not_made_up():
    assert power([(0, 1000), (1, 1000), (2, DENIED), (3, 1000), (4, 3000)]) == [0, 1000, DENIED, 1000, 3000]
    assert power([(0, 1000), (100, 1000), (101, 1000)]) == [0, 0, 1000]


def test_a_pause_is_not_bridged():
    meter = EnergyMeter()
    assert meter.add(0, NEVER, 1000, LIMIT) == 0
    meter.pause()
    assert meter.add(2 * SECOND_NS, NEVER, 1000, LIMIT) == 0


@pytest.mark.parametrize("first", [DENIED, missing("GPU_IS_LOST")])
def test_a_failure_decides_no_basis(first):
    meter = EnergyMeter()
    assert meter.add(0, first, 1000, LIMIT) == first
    assert meter.basis is None
    assert meter.add(SECOND_NS, 500, 1000, LIMIT) == 0
    assert meter.basis == "counter"
    assert meter.add(2 * SECOND_NS, NEVER, 1000, LIMIT) == NEVER
