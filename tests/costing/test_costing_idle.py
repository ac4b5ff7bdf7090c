"""Who pays for idle time: whatever the policy and whichever rates there are, the lines are the invoice."""

from collections import Counter

import pytest
from costing_books import DAY, HOUR, books_of, capacity, line, minutes, rate, tenant
from costing_helpers import make_run
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing.periods import Period
from farebox.costing.report import build_report

PIECE = 6 * HOUR
PLACES = {"e": ("h", "H100"), "f": ("h", "H100"), "g": ("h", "L4"), "k": ("i", "H100")}
POLICIES = ("separate", "weighted", "even", "reservation")
THREE_DAYS = Period.between(0, 3 * DAY)

pieces = st.lists(
    st.lists(
        st.tuples(
            st.sampled_from(["tenant", "tenant", "idle", "idle", "overhead"]),
            st.sampled_from("ABC"),
            st.integers(1, PIECE - 1),
        ),
        min_size=1,
        max_size=8,
    ),
    min_size=1,
    max_size=len(PLACES),
)
cuts = st.integers(0, 11).map(lambda n: n * PIECE)
cards = st.dictionaries(
    st.sampled_from(
        [("any", ""), ("gpu_type", "H100"), ("gpu_type", "L4"), ("host", "h"), *(("engine", e) for e in "efgk")]
    ),
    st.tuples(st.sampled_from(["3.99", "0.000001", "10/7", "0"]), cuts, st.sampled_from([None, 12 * PIECE])),
)
registers = st.lists(
    st.builds(
        lambda name, start, length, kept: tenant(name, start=start, end=length and start + length, reserved=kept),
        st.sampled_from("ABCDE"),
        cuts,
        st.sampled_from([None, PIECE, DAY]),
        st.sampled_from([None, 250, 3000]),
    ),
    max_size=4,
    unique_by=lambda row: row.tenant_id,
)


def run_lines(engine, told):
    """Six hours after six: a part of each for somebody, the rest idle."""
    host, gpu_type = PLACES[engine]
    for number, (account, name, ns) in enumerate(told):
        where = {"start": number * PIECE, "engine_id": engine, "host": host, "gpu_type": gpu_type}
        yield line(account, name if account == "tenant" else "", ns, **where)
        yield line("idle", "", PIECE - ns, **where)


@tries(30)
@given(pieces, cards, registers, st.booleans())
def test_lines_are_the_invoice_under_every_policy_and_any_rates(told, card, register, declared):
    engines = dict(zip(PLACES, told, strict=False))
    lines = [each for engine, parts in engines.items() for each in run_lines(engine, parts)]
    runs = [
        make_run(engine_id=engine, host=PLACES[engine][0], gpu_type=PLACES[engine][1], ended_ns=len(parts) * PIECE)
        for engine, parts in engines.items()
    ]
    rates = [rate(price, start, end, scope, name) for (scope, name), (price, start, end) in card.items()]
    paid = [capacity(0, 2 * DAY, 2, *place) for place in set(PLACES.values())] if declared else []
    books = books_of(lines, runs, rates=rates, tenants=register, capacities=paid)
    totals = set()
    for policy in POLICIES:
        report = build_report(books, THREE_DAYS, idle_policy=policy)
        billed = Counter()
        for cell in report.cells:
            billed[cell.day] += (cell.amount_micro or 0) + (cell.idle_micro or 0)
        assert report.check() == ()
        assert sum(line.billed_micro or 0 for line in report.lines) == (report.invoice_micro or 0)
        assert billed.total() == (report.invoice_micro or 0)
        totals.add((report.invoice_micro, report.total.gpu_ns, tuple(sorted((+billed).items()))))
    assert len(totals) == 1


def test_one_who_reserved_and_did_not_ride_pays_at_the_rates_of_the_idle_machines():
    lines = [
        *minutes("tenant", "A", 0, HOUR),
        *minutes("idle", "", HOUR, 3 * HOUR),
        *minutes("idle", "", 0, 3 * HOUR, engine_id="f"),
    ]
    runs = [make_run(ended_ns=3 * HOUR), make_run(engine_id="f", ended_ns=3 * HOUR)]
    own = [rate("4", scope="engine", name="e"), rate("1", scope="engine", name="f")]
    books = books_of(lines, runs, rates=own, tenants=[tenant("B", reserved=500)])
    report = build_report(books, idle_policy="reservation")
    assert {x.keys[0] or x.account: x.billed_micro for x in report.lines if x.billed_micro} == {
        "A": 4_000_000,
        "B": 11_000_000,
    }
    assert {cell.rate: cell.idle_micro for cell in report.cells if cell.tenant_id == "B"} == {
        "4": 8_000_000,
        "1": 3_000_000,
    }
    assert report.check() == () and report.invoice_micro == 15_000_000


def test_a_rider_whose_own_time_has_no_rate_pays_for_idle_time_that_has_one():
    lines = [*minutes("tenant", "A", 0, HOUR), *minutes("idle", "", 0, HOUR, engine_id="f")]
    runs = [make_run(ended_ns=HOUR), make_run(engine_id="f", ended_ns=HOUR)]
    books = books_of(lines, runs, rates=[rate("4", scope="engine", name="f")])
    report = build_report(books, idle_policy="weighted")
    assert (report.lines[0].billed_micro, report.lines[0].unrated_gpu_ns) == (4_000_000, HOUR)
    assert report.check() == () and report.account("idle").billed_micro == 0


@pytest.mark.parametrize(
    ("register", "paid"),
    [
        ([], {"A": 3_000_000, "B": 3_000_000}),
        ([tenant("A"), tenant("C")], {"A": 2_333_334, "B": 2_333_333, "C": 1_333_333}),
        ([tenant("C", start=2 * HOUR)], {"A": 2_333_334, "B": 2_333_333, "C": 1_333_333}),
        ([tenant("C", start=DAY), tenant("D", end=0)], {"A": 3_000_000, "B": 3_000_000}),
    ],
)
def test_even_counts_everybody_on_the_register_that_day_and_whoever_else_rode(register, paid):
    lines = [
        *minutes("tenant", "A", 0, HOUR),
        *minutes("tenant", "B", HOUR, 2 * HOUR),
        *minutes("idle", "", 2 * HOUR, 6 * HOUR),
    ]
    report = build_report(books_of(lines, rates=[rate("1")], tenants=register), idle_policy="even")
    assert {x.keys[0]: x.billed_micro for x in report.lines if x.account == "tenant"} == paid
    assert report.check() == () and report.account("idle").billed_micro == 0
