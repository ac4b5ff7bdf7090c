"""Money: whole micro-units that add up to the invoice, and what becomes of idle time."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farebox.costing.apportion import apportion, round_together
from farebox.costing.rating import (
    RateError,
    amounts,
    exact_price,
    find_rate,
    idle_weights,
    invoice,
    money_text,
    ownership_rate,
    per_1k,
    price_of,
    spread,
)
from farebox.events import MINUTE_NS, Rate

RATE = Decimal("3.99")
BUSY = [1_200_000_000_001, 600_000_000_000]
OVERHEAD = 99_999_999_999
IDLE = 3_600_000_000_000 - sum(BUSY) - OVERHEAD


def rate(name="", price="1", start=0, end=None, currency="USD", scope=None):
    """A rate that holds from minute `start` to minute `end`; for any GPU without a `name`."""
    to_ns = None if end is None else end * MINUTE_NS
    return Rate(scope or ("gpu_type" if name else "any"), name, currency, price, None, start * MINUTE_NS, to_ns, "")


def test_the_hour_of_the_idle_case_is_rated_exactly():
    assert amounts([*BUSY, IDLE, OVERHEAD], RATE) == [1_330_000, 665_000, 1_884_167, 110_833]
    assert invoice(3_600_000_000_000, RATE) == 3_990_000


@pytest.mark.parametrize(
    ("policy", "expected", "left"),
    [
        ("separate", [1_330_000, 665_000], 1_884_167),
        ("weighted", [2_586_111, 1_293_056], 0),
        ("even", [2_272_084, 1_607_083], 0),
        ("reservation", [1_330_000, 2_549_167], 0),
    ],
)
def test_idle_policies(policy, expected, left):
    busy, idle = [1_330_000, 665_000], 1_884_167
    weights = idle_weights(policy, BUSY, [900 * 10**9, 2700 * 10**9])
    parts, rest = spread(idle, weights)
    assert [amount + part for amount, part in zip(busy, parts, strict=True)] == expected
    assert rest == left


def test_idle_cost_never_disappears():
    assert spread(100, idle_weights("weighted", [0, 0])) == ([0, 0], 100)
    assert spread(100, idle_weights("reservation", [5, 5], [5, 1])) == ([0, 0], 100)
    assert spread(100, []) == ([], 100)
    with pytest.raises(ValueError, match="reserved"):
        idle_weights("reservation", [1])


def test_cents_by_largest_remainder():
    assert apportion(100, [1, 1, 1]) == [34, 33, 33]
    assert apportion(1, [1, 1, 1]) == [1, 0, 0]
    with pytest.raises(ValueError, match="not all zero"):
        apportion(1, [0, 0])
    with pytest.raises(ValueError, match="negative"):
        apportion(1, [2, -1])


def test_an_invoice_rounds_half_to_even():
    assert round_together([Fraction(1, 2)]) == [0]
    assert round_together([Fraction(3, 2)]) == [2]
    assert round_together([Fraction(1, 2), Fraction(1)]) == [1, 1]


prices = st.decimals(0, 1000, places=6)


@given(st.lists(st.integers(0, 10**18), max_size=20), prices)
def test_lines_add_up_to_the_invoice(gpu_ns, price):
    lines = amounts(gpu_ns, price)
    assert sum(lines) == invoice(sum(gpu_ns), price)
    for ns, amount in zip(gpu_ns, lines, strict=True):
        assert abs(amount - ns * Fraction(price) * 10**6 / 3_600_000_000_000) < 1


@given(st.integers(0, 10**12), st.lists(st.integers(0, 10**15), max_size=9))
def test_spreading_keeps_every_micro_unit(amount, weights):
    parts, rest = spread(amount, weights)
    assert sum(parts) + rest == amount


def test_per_1k_with_and_without_idle_time():
    assert per_1k(1_330_000, 250_000) == Decimal("0.005320")
    assert per_1k(2_586_111, 250_000) == Decimal("0.010344")
    assert str(per_1k(1_330_000, 250_000)) == "0.005320"
    assert per_1k(1_330_000, 0) is None
    assert per_1k(0, 10) == 0


def test_money_is_exact_text():
    assert money_text(1) == "0.000001"
    assert money_text(-1_330_000) == "-1.330000"
    assert money_text(2**62 + 1) == "4611686018427.387905"
    assert money_text(0, 2) == "0.00"


def test_rates_hold_from_their_start_until_just_before_their_end():
    old, new = rate("H100", "2", 100, 200), rate("H100", "3", 200)
    assert find_rate([new, old], "H100", 200 * MINUTE_NS - 1) == old
    assert find_rate([new, old], "H100", 200 * MINUTE_NS) == new
    assert find_rate([new, old], "H100", 100 * MINUTE_NS - 1) is None
    assert find_rate([new, old], "A100", 150 * MINUTE_NS) is None


def test_the_narrowest_scope_wins():
    general, special = rate(price="1"), rate("H100", "2")
    host, engine = rate("h", "3", scope="host"), rate("e", "4", 100, 200, scope="engine")
    rates = [engine, host, special, general]
    assert find_rate(rates, "H100", 150 * MINUTE_NS, "h", "e") == engine
    assert find_rate(rates, "H100", 200 * MINUTE_NS, "h", "e") == host
    assert find_rate(rates, "H100", 150 * MINUTE_NS, "other", "f") == special
    assert find_rate(rates, "A100", 150 * MINUTE_NS) == general


def test_overlapping_rates_are_refused():
    with pytest.raises(RateError, match=r"two rates for gpu type H100 hold at 9000000000000: 2 USD and 3 EUR"):
        find_rate([rate("H100", "3", 150, None, "EUR"), rate("H100", "2", 100, 200)], "H100", 120)
    with pytest.raises(RateError, match="two rates for any GPU"):
        find_rate([rate(price="3", start=150), rate(price="2", start=100)], "H100", 120)
    with pytest.raises(RateError, match="before it begins"):
        find_rate([rate("", "3", 150, 100)], "H100", 120)


def test_rates_start_and_end_on_whole_minutes():
    with pytest.raises(RateError, match="whole minutes"):
        find_rate([rate()._replace(from_ns=1)], "H100", 5)
    with pytest.raises(RateError, match="whole minutes"):
        find_rate([rate()._replace(to_ns=MINUTE_NS + 1)], "H100", 5)


def test_owning_a_gpu_has_an_exact_price_per_calendar_hour():
    price = ownership_rate(*map(Decimal, ("35000", "4", "1.3", "1.3", "0.10", "0.10")))
    assert round(price, 6) == Fraction("1.567402")
    assert exact_price(f"{price.numerator}/{price.denominator}") == price
    assert f"{price_of(f'{price.numerator}/{price.denominator}'):.6f}" == "1.567402"
    with pytest.raises(RateError, match="more than 0 years"):
        ownership_rate(*map(Decimal, ("35000", "0", "1.3", "1.3", "0.10", "0.10")))


@pytest.mark.parametrize("text", ["", "abc", "NaN", "Infinity", "-1"])
def test_a_price_is_a_finite_amount(text):
    with pytest.raises(RateError):
        price_of(text)
