"""Prices of a period: days add up to months, groupings change nothing, rates change on the minute."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from costing_books import DAY, HOUR, at, books_of, line, minutes, price, rate, tenant
from costing_helpers import make_run
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing.line import COLUMNS
from farebox.costing.periods import Period
from farebox.costing.rating import RateError
from farebox.costing.report import build_report
from farebox.errors import InputError
from farebox.events import MINUTE_NS

A, B, OVERHEAD = 1_200_000_000_001, 600_000_000_000, 99_999_999_999
IDLE_HOUR = [
    line("tenant", "A", A),
    line("tenant", "B", B),
    line("overhead", "A", OVERHEAD),
    line("idle", "", HOUR - A - B - OVERHEAD),
]
RESERVED = [tenant("A", reserved=250), tenant("B", reserved=750)]
DST_MONTHS = [
    ("UTC", "2026-11"),
    ("America/New_York", "2026-03"),
    ("America/New_York", "2026-11"),
    ("Europe/Berlin", "2026-10"),
    ("Australia/Lord_Howe", "2026-04"),
    ("Asia/Kolkata", "2026-05"),
]


@pytest.mark.parametrize(
    ("policy", "billed"),
    [
        ("separate", {"A": 1_330_000, "B": 665_000, "idle": 1_884_167, "overhead": 110_833}),
        ("weighted", {"A": 2_586_111, "B": 1_293_056, "idle": 0, "overhead": 110_833}),
        ("even", {"A": 2_272_084, "B": 1_607_083, "idle": 0, "overhead": 110_833}),
        ("reservation", {"A": 1_330_000, "B": 2_549_167, "idle": 0, "overhead": 110_833}),
    ],
)
def test_idle_is_paid_as_the_policy_says(policy, billed):
    books = books_of(IDLE_HOUR, [make_run(ended_ns=HOUR)], tenants=RESERVED)
    report = build_report(books, idle_policy=policy, rate=Decimal("3.99"))
    found = {line.keys[0] or line.account: line.billed_micro for line in report.lines}
    assert found == billed | {"unobserved": 0}
    assert report.total.billed_micro == report.invoice_micro == 3_990_000
    assert sum(cell.idle_micro for cell in report.cells) == 0


def test_a_tenant_that_reserved_and_never_rode_pays_for_idle_time():
    books = books_of(minutes("idle", "", 0, HOUR), tenants=[tenant("A", "blue", reserved=500)])
    report = build_report(books, rate=Decimal(4), idle_policy="reservation", by=("team",))
    assert [(x.account, x.keys[0], x.billed_micro) for x in report.lines[:2]] == [
        ("tenant", "blue", 4_000_000),
        ("idle", "", 0),
    ]
    nobody = build_report(replace(books, tenants=()), rate=Decimal(4), idle_policy="reservation")
    assert nobody.account("idle").billed_micro == 4_000_000


ledgers = st.lists(
    st.builds(
        lambda account, name, gpu_ns, minute, host, tokens: (
            account,
            name if account == "tenant" else "",
            gpu_ns,
            minute,
            {"host": host, "prompt_tokens": tokens, "output_tokens": tokens // 3},
        ),
        st.sampled_from(["tenant", "tenant", "idle", "overhead", "unobserved"]),
        st.sampled_from(["A", "B", "C"]),
        st.integers(0, MINUTE_NS),
        st.integers(0, 28 * 1440),
        st.sampled_from(["h", "i"]),
        st.integers(0, 10**6),
    ),
    min_size=1,
    max_size=25,
)
HALF = DAY + 9 * HOUR + 7 * MINUTE_NS
cards = st.sampled_from(["3.99", "0.000001", "10/7", "2.5"]).flatmap(
    lambda old: st.just(
        [("any", "", old, 0, HALF), ("any", "", "4.51", HALF, None), ("host", "i", "1/3", 3 * HALF, None)]
    )
)


def books_in(month, rows, card):
    """Books of a month: rows a few minutes after its start, rates that change within its second and fourth day."""
    shift = month.from_ns - DAY
    lines = [line(account, name, ns, month.from_ns + m * MINUTE_NS, **more) for account, name, ns, m, more in rows]
    runs = [
        make_run(run_id=str(n), host=each.host, started_ns=each.minute_ns, ended_ns=each.minute_ns + each.gpu_ns)
        for n, each in enumerate(lines)
    ]
    rates = [
        rate(text, start and start + shift, end and end + shift, scope, name) for scope, name, text, start, end in card
    ]
    team = [tenant("A", "x", 0, month.from_ns + HALF), tenant("A", "y", month.from_ns + HALF), tenant("B", "x")]
    return books_of(lines, runs, rates=rates, tenants=team, prices=[price(fresh="0.37", output="1.1")])


def sums(report):
    """What each account and key was billed, used and would have cost by the token, whatever the period."""
    total = Counter()
    for each in report.lines:
        for name in ("billed_micro", "amount_micro", "loaded_micro", "gpu_ns", "api_micro", "requests"):
            total[each.account, each.keys, name] += getattr(each, name) or 0
    return {key: value for key, value in total.items() if value}


@tries(10)
@given(st.sampled_from(DST_MONTHS), ledgers, cards, st.sampled_from(["separate", "weighted", "even"]))
def test_the_days_of_a_month_add_up_to_the_month(place, rows, card, policy):
    zone, month = place
    period = Period.parse(month, zone)
    books = books_in(period, rows, card)
    whole = build_report(books, period, ("tenant", "team"), policy)
    days = [build_report(books, Period.parse(day.name, zone), ("tenant", "team"), policy) for day in period.days()]
    total = Counter()
    for day in days:
        total.update(sums(day))
    assert total == Counter(sums(whole))
    assert sum(day.invoice_micro or 0 for day in days) == whole.invoice_micro == whole.total.billed_micro
    assert whole.check() == ()


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"])
@pytest.mark.parametrize("month", ["2026-03", "2026-11"])
def test_the_days_of_a_month_in_which_clocks_change_add_up_in_every_zone(zone, month):
    """A GPU that is never off: 23, 24, 24.5 and 25 hours a day at a rate that changes on the 8th, 05:30 UTC."""
    period = Period.parse(month, zone)
    start, end = period.from_ns - DAY, period.to_ns + DAY
    change = at(f"{month}-08T05:30")
    lines = [
        line("tenant" if n % 3 else "idle", "AB"[n % 2] if n % 3 else "", HOUR // 2, half)
        for n, half in enumerate(range(start, end, HOUR // 2))
    ]
    books = books_of(
        lines, [make_run(ended_ns=end, started_ns=start)], rates=[rate("3.99", 0, change), rate("7/3", change)]
    )
    whole = build_report(books, period, ("tenant",), "weighted")
    days = [build_report(books, Period.parse(day.name, zone), ("tenant",), "weighted") for day in period.days()]
    total = Counter()
    for day in days:
        total.update(sums(day))
    assert total == Counter(sums(whole))
    assert sum(day.invoice_micro for day in days) == whole.invoice_micro == whole.total.billed_micro
    assert {day.check() for day in [*days, whole]} == {()}
    assert whole.total.gpu_ns == period.to_ns - period.from_ns


@tries(25)
@given(ledgers, cards, st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=3, unique=True))
def test_no_grouping_changes_an_amount(rows, card, by):
    period = Period.parse("2026-10", "Europe/Berlin")
    books = books_in(period, rows, card)
    plain = build_report(books, period, ("tenant",), "weighted")
    grouped = build_report(books, period, ("tenant", *by), "weighted")
    total = Counter()
    for (account, keys, name), value in sums(grouped).items():
        total[account, keys[:1], name] += value
    assert total == Counter(sums(plain))
    cells = Counter()
    for cell in grouped.cells:
        cells[cell.account] += cell.amount_micro + cell.idle_micro
    assert {name: value for name, value in cells.items() if value} == {
        name: plain.account(name).billed_micro for name in cells if plain.account(name).billed_micro
    }


def test_a_minute_belongs_to_the_rate_at_its_start():
    change = 10 * MINUTE_NS
    books = books_of(minutes("tenant", "A", 0, HOUR), rates=[rate("6", 0, change), rate("12", change)])
    report = build_report(books, by=("tenant",))
    assert report.total.amount_micro == report.invoice_micro == 1_000_000 + 10_000_000
    assert (report.rate, len(report.rates)) == (None, 2)
    assert [(c.from_ns, c.to_ns, c.rate) for c in report.cells] == [(0, change, "6"), (change, HOUR, "12")]


def test_old_time_with_the_old_card_gives_the_old_invoice():
    lines = [line("tenant", name, 17 * MINUTE_NS // 31, m * MINUTE_NS) for m, name in enumerate("ABCABCA" * 20)]
    runs = [
        make_run(run_id=str(n), started_ns=x.minute_ns, ended_ns=x.minute_ns + x.gpu_ns) for n, x in enumerate(lines)
    ]
    old = books_of(lines, runs, rates=[rate("3.99")])
    new = replace(old, rates=(rate("3.99", 0, DAY), rate("5.01", DAY), rate("9", scope="host", name="another")))
    assert build_report(old).lines == build_report(new).lines
    dearer = build_report(replace(old, rates=(rate("5.01"),)))
    assert dearer.invoice_micro > build_report(old).invoice_micro
    assert build_report(replace(old, rates=new.rates)).lines == build_report(old).lines


def test_an_engines_own_rate_beats_its_hosts():
    lines = [*minutes("tenant", "A", 0, HOUR), *minutes("tenant", "A", 0, HOUR, engine_id="f")]
    runs = [make_run(ended_ns=HOUR), make_run(engine_id="f", ended_ns=HOUR)]
    books = books_of(
        lines, runs, rates=[rate("1"), rate("2", scope="host", name="h"), rate("3", scope="engine", name="f")]
    )
    report = build_report(books, by=("engine",))
    assert [line.amount_micro for line in report.lines[:2]] == [2_000_000, 3_000_000]
    assert report.check() == ()


def test_time_without_a_rate_makes_lower_bounds():
    books = books_of(minutes("tenant", "A", 0, 2 * HOUR), rates=[rate("4", HOUR)])
    report = build_report(books)
    a = report.lines[0]
    assert (a.amount_micro, a.unrated_gpu_ns, a.per_1k) == (4_000_000, HOUR, None)
    assert "No rate for 1.000 GPU·h: totals are lower bounds (≥)." in report.notes()
    assert report.check() == ()
    before = build_report(books, Period.between(0, HOUR))
    assert (before.is_priced, before.total.amount_micro, before.invoice_micro) == (False, None, None)


def test_currencies_are_never_mixed():
    books = books_of(
        minutes("tenant", "A", 0, HOUR), rates=[rate("4", 0, HOUR // 2), rate("4", HOUR // 2, currency="EUR")]
    )
    with pytest.raises(RateError, match="EUR and USD cannot be added"):
        build_report(books)
    assert build_report(books, Period.between(HOUR // 2, HOUR)).currency == "EUR"
    with pytest.raises(RateError, match="in EUR, not USD"):
        build_report(books, Period.between(HOUR // 2, HOUR), currency="USD")
    assert build_report(books, rate=Decimal(1), currency="CHF").currency == "CHF"


def test_ownership_is_billed_by_its_exact_fraction():
    owned = Fraction(35000, 35040) + Fraction("0.169") + Fraction(3500, 8760)
    books = books_of(minutes("idle", "", 0, 1000 * HOUR), rates=[rate(f"{owned.numerator}/{owned.denominator}")])
    report = build_report(books, Period.between(0, 1000 * HOUR))
    days = [report.total.amount_micro, round(24 * owned * 10**6) * 41 + round(16 * owned * 10**6)]
    assert days[0] == days[1]


def test_hours_of_a_repeated_clock_stay_apart():
    start = at("2026-10-25T00:00")
    books = books_of(minutes("tenant", "A", start, start + 2 * HOUR), rates=[rate("1")])
    report = build_report(books, Period.parse("2026-10-25", "Europe/Berlin"), ("hour",))
    assert [x.keys[0] for x in report.lines if x.account == "tenant"] == [
        "2026-10-25T02:00+01:00",
        "2026-10-25T02:00+02:00",
    ]


@pytest.mark.parametrize("by", [("colour",), ()])
def test_groups_must_be_known(by):
    with pytest.raises(InputError, match="group by"):
        build_report(books_of(IDLE_HOUR), by=by)
