"""Capacity: what finance pays for, whether or not an engine ran on it."""

from dataclasses import replace
from decimal import Decimal

import pytest
from costing_books import DAY, HOUR, at, books_of, capacity, line, minutes, rate, read_case
from costing_helpers import make_run
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing.capacity import CapacityError
from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.events import MINUTE_NS


def micro(text):
    return int(Decimal(text) * 1_000_000)


def test_a_gap_in_what_was_seen_is_paid_and_called_unobserved():
    """Case D02: the card was paid for while samples were missing."""
    case = read_case("D02.json")
    (start, end), (gone, back) = ([at(text) for text in case[key]] for key in ("paid", "missing"))
    seen = [*minutes("tenant", "A", start, gone), *minutes("idle", "", back, end)]
    runs = [make_run(run_id=str(n), started_ns=a, ended_ns=b) for n, (a, b) in enumerate([(start, gone), (back, end)])]
    books = books_of(seen, runs, rates=[rate(case["rate_per_hour"])], capacities=[capacity(start, end)])
    report = build_report(books)
    unobserved = report.account("unobserved").amount_micro
    assert report.total.amount_micro == report.invoice_micro == micro(case["expect"]["total"])
    assert unobserved == micro(case["expect"]["unobserved"])
    assert report.total.amount_micro - unobserved == micro(case["expect"]["observed"])
    assert dict(report.basis) == {"step": Decimal("0.583333"), "unobserved": Decimal("0.416667")}
    assert "h (H100): 0.833 GPU·h declared without a run, as unobserved." in report.notes()
    assert [(c.engine_id, c.account) for c in report.cells if c.basis == ""] == [("", "unobserved")]


def test_a_machine_that_went_silent_is_charged_to_its_last_heartbeat():
    """Case D12: without a declaration the wall ends there, with one what was declared goes on."""
    case = read_case("D12.json")
    start, last, end = (at(case[key]) for key in ("start", "last_heartbeat", "report_at"))
    books = books_of(
        minutes("tenant", "A", start, last),
        [make_run(started_ns=start, heartbeat_ns=last)],
        rates=[rate(case["rate_per_hour"])],
    )
    report = build_report(books, Period.between(start, end))
    assert report.total.amount_micro == report.invoice_micro == micro(case["expect"])
    assert "h (H100): last seen 2026-05-01 10:20:00." in report.notes()
    declared = build_report(replace(books, capacities=(capacity(start, end),)), Period.between(start, end))
    assert declared.total.amount_micro == declared.invoice_micro == micro("90.00")
    assert build_report(books, Period.parse("2026-05-01")).total.amount_micro == micro(case["expect"])


def test_a_declaration_that_is_too_short_never_makes_idle_negative():
    """Case D01: capacity is known for 45 of the 60 minutes that tenants were busy."""
    case = read_case("D01.json")
    start = at(case["hour"])
    known = start + case["asset_seen_minutes"] * MINUTE_NS
    end = start + case["tenant_busy_minutes"] * MINUTE_NS
    books = books_of(
        minutes("tenant", "A", start, end), rates=[rate(case["rate_per_hour"])], capacities=[capacity(start, known)]
    )
    report = build_report(books)
    assert report.total.amount_micro == micro(case["expect"]["total"])
    assert report.account("idle").amount_micro == micro(case["expect"]["idle"])
    (place,) = report.places
    assert place.walls_gpu_ns == case["expect"]["asset_missing_minutes"] * MINUTE_NS
    assert any("capacity data is missing for 0.250 GPU·h" in note for note in report.notes())
    assert report.check() == ()


def test_sharers_of_one_gpu_pay_for_one_gpu():
    """Case D08: shares of more than the card that is paid for are told, not scaled."""
    case = read_case("D08.json")
    hour = case["hours"] * HOUR

    def report_of(parts):
        lines = [line("tenant", name, int(Decimal(str(part)) * hour)) for name, part in parts.items()]
        books = books_of(lines, [make_run(ended_ns=hour)], rates=[rate(case["rate_per_hour"])])
        return build_report(replace(books, capacities=(capacity(0, hour),)), Period.between(0, hour))

    fair = report_of(case["tenants"])
    assert [line.amount_micro for line in fair.lines[:4]] == [1_000_000] * 4
    assert (fair.total.amount_micro, fair.check()) == (4_000_000, ())
    over = report_of(case["variant_over"])
    assert over.invoice_micro == 4_000_000
    assert over.check()[0] == "h (H100): 0.200 GPU·h more measured than declared."
    assert (over.residual_gpu_ns, over.residual_micro) == (720_000_000_000, 800_000)


def two_engines(declared, *, uuids=(), hours=(0, 1), gpus=1):
    """Two engines for an hour each from given hours on, on a host with so much declared for three hours."""
    lines = [
        each
        for name, hour in zip("ef", hours, strict=True)
        for each in minutes("tenant", name, hour * HOUR, (hour + 1) * HOUR, engine_id=name)
    ]
    runs = [
        make_run(engine_id=name, started_ns=hour * HOUR, ended_ns=(hour + 1) * HOUR, gpu_uuids=uuids)
        for name, hour in zip("ef", hours, strict=True)
    ]
    books = books_of(lines, runs, rates=[rate("1")], capacities=[capacity(0, 3 * HOUR, gpus)] if declared else [])
    return build_report(books, Period.between(0, 3 * HOUR))


def test_an_hour_above_what_is_declared_does_not_fill_the_hour_after_it():
    report = two_engines(True, hours=(0, 0))
    assert (report.wall_gpu_ns, report.total.gpu_ns) == (3 * HOUR, 4 * HOUR)
    assert report.account("unobserved").gpu_ns == 2 * HOUR
    assert report.residual_micro == 1_000_000
    assert report.check()[0] == (
        "h (H100): 1.000 GPU·h more measured than declared: 1 GPU too many from 1970-01-01 00:00:00 "
        "to 1970-01-01 01:00:00 (e/r, f/r)."
    )
    (conflict,) = report.conflicts
    assert conflict[2:6] == (0, HOUR, 1, ("e/r", "f/r"))
    assert two_engines(True, hours=(0, 1)).check() == two_engines(True, hours=(0, 0), gpus=2).check() == ()


def test_a_gpu_that_two_engines_had_at_once_is_not_charged_twice_in_silence():
    report = two_engines(False, uuids=("GPU-0",), hours=(0, 0))
    (problem,) = report.check()
    assert problem == (
        "h: GPU-0 was used by e/r, f/r at once from 1970-01-01 00:00:00 to 1970-01-01 01:00:00: "
        "1.000 GPU·h are charged more than once. Declare what you pay for with farebox hosts add."
    )
    assert two_engines(False, uuids=("GPU-0",)).check() == two_engines(False, hours=(0, 0)).check() == ()
    declared = two_engines(True, uuids=("GPU-0",), hours=(0, 0), gpus=2)
    assert declared.check() == () and declared.invoice_micro == 6_000_000
    assert any("GPU-0 was used by e/r, f/r at once" in note for note in declared.notes())


walls = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20), st.integers(1, 3)), min_size=1, max_size=8)


@tries(25)
@given(walls, st.lists(st.tuples(st.integers(0, 40), st.integers(1, 20), st.integers(1, 4)), max_size=4))
def test_what_is_too_much_and_what_is_missing_are_told_minute_by_minute(told, contracts):
    runs, lines = [], []
    for number, (start, length, gpus) in enumerate(told):
        name, span = f"e{number}", (start * MINUTE_NS, (start + length) * MINUTE_NS)
        runs.append(make_run(engine_id=name, started_ns=span[0], ended_ns=span[1], gpus=gpus))
        lines += minutes("tenant", "A", *span, gpus, engine_id=name)
    paid = [capacity(a * MINUTE_NS, (a + n) * MINUTE_NS, gpus) for a, n, gpus in contracts]
    report = build_report(books_of(lines, runs, rates=[rate("3.99")], capacities=paid), Period.between(0, HOUR))
    excess = missing = 0
    for minute in range(60):
        up = sum(gpus for start, length, gpus in told if start <= minute < start + length)
        known = sum(gpus for start, length, gpus in contracts if start <= minute < start + length)
        excess += max(up - known, 0) if known else 0
        missing += max(known - up, 0)
    assert report.residual_gpu_ns == sum(each.gpu_ns for each in report.conflicts) == excess * MINUTE_NS
    assert report.account("unobserved").gpu_ns == missing * MINUTE_NS
    assert bool(report.check()) == bool(excess)


def test_declared_gpus_on_a_host_without_any_run_are_on_the_bill():
    books = books_of([], [], rates=[rate("2")], capacities=[capacity(0, DAY, gpus=8, host="spare")])
    report = build_report(books, Period.between(0, DAY), ("host",))
    assert [(x.account, x.keys, x.amount_micro) for x in report.lines if x.gpu_ns] == [
        ("unobserved", ("spare",), 8 * 24 * 2_000_000)
    ]
    assert report.check() == ()


def test_overlapping_contracts_add_up_and_each_day_stands_alone():
    contracts = [capacity(0, None, gpus=2), capacity(DAY, 2 * DAY, gpus=3)]
    books = books_of([], [], rates=[rate("1")], capacities=contracts)
    days = [build_report(books, Period.between(n * DAY, (n + 1) * DAY)).invoice_micro for n in range(3)]
    assert days == [48_000_000, 120_000_000, 48_000_000]
    assert build_report(books, Period.between(0, 3 * DAY)).invoice_micro == sum(days)


def test_declared_time_at_an_engines_own_rate_is_paid_at_that_rate():
    books = books_of(
        minutes("tenant", "A", 0, HOUR),
        rates=[rate("1"), rate("5", scope="engine", name="e")],
        capacities=[capacity(0, 2 * HOUR)],
    )
    report = build_report(books, Period.between(0, 2 * HOUR))
    assert (report.lines[0].amount_micro, report.account("unobserved").amount_micro) == (5_000_000, 1_000_000)
    assert (report.invoice_micro, report.check()) == (6_000_000, ())


def test_only_hosts_without_a_declaration_fall_back_to_their_runs():
    lines = [*minutes("tenant", "A", 0, HOUR), *minutes("tenant", "A", 0, HOUR, host="i")]
    runs = [make_run(ended_ns=HOUR), make_run(engine_id="f", host="i", ended_ns=HOUR)]
    report = build_report(books_of(lines, runs, rates=[rate("1")], capacities=[capacity(0, HOUR)]))
    assert "No declared capacity for i (H100): the runs' walls stand in for it." in report.notes()
    assert report.check() == ()


@pytest.mark.parametrize(
    "broken", [capacity(0, gpus=0), capacity(1), capacity(0, MINUTE_NS + 1), capacity(2 * HOUR, HOUR)]
)
def test_capacity_that_cannot_be_paid_is_refused(broken):
    with pytest.raises(CapacityError):
        build_report(books_of([], [], capacities=[broken]), Period.between(0, HOUR))
