"""Corrections: what arrives after a period was closed is on the next bill, once, and the sum of all bills is right."""

import json
from collections import Counter
from dataclasses import replace

import pytest
from costing_books import HOUR, books_of, line, minutes, rate, tenant
from costing_helpers import make_run
from hypothesis import given, settings
from hypothesis import strategies as st

from farebox.costing.cell import PricedCell
from farebox.costing.closing_cells import cells_from_json, cells_to_json, freeze
from farebox.costing.corrections import corrections
from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.errors import InputError
from farebox.events import LEDGER, Closing

SEPTEMBER, OCTOBER, NOVEMBER = (Period.parse(f"2026-{month:02}") for month in (9, 10, 11))
START = SEPTEMBER.from_ns
TEAMS = [tenant("A", "x"), tenant("B", "y")]


def closed(books, period, **options):
    report = build_report(books, period, **options)
    content = json.dumps(freeze(report, books))
    return replace(books, closings=(*books.closings, Closing(*period, 0, "", content)))


def later(books, *lines):
    """The books when these lines arrived, too."""
    rows = LEDGER.from_arrow(books.ledger)
    return replace(books, ledger=LEDGER.to_arrow([*rows, *lines]))


def september():
    runs = [make_run(started_ns=START, heartbeat_ns=NOVEMBER.to_ns, gpus=2)]
    return books_of(minutes("tenant", "A", START, START + HOUR), runs, rates=[rate("6")], tenants=TEAMS)


LATE = line("tenant", "B", 10 * 60 * 10**9, START + 5 * HOUR, requests=3)


def test_a_late_event_is_a_line_on_the_first_open_bill():
    books = later(closed(september(), SEPTEMBER), LATE)
    october = build_report(books, OCTOBER, ("tenant", "team"))
    corrected = [x for x in october.lines if x.account.startswith("correction")]
    assert [(x.account, x.keys, x.billed_micro, x.requests) for x in corrected] == [
        ("correction of 2026-09", ("B", "y"), 1_000_000, 3)
    ]
    assert october.total.billed_micro == 1_000_000
    assert october.invoice_micro == 744 * 2 * 6_000_000 + 1_000_000
    assert build_report(books, NOVEMBER).total.requests == 0


def test_no_late_event_no_correction():
    assert corrections(closed(september(), SEPTEMBER), OCTOBER) == ()
    assert corrections(september(), OCTOBER) == ()


def test_a_correction_that_was_billed_is_not_billed_again():
    books = closed(later(closed(september(), SEPTEMBER), LATE), OCTOBER)
    assert corrections(books, NOVEMBER) == ()
    more = later(books, LATE._replace(tenant_id="A"))
    assert [(c.tenant_id, c.amount_micro, c.correction_of) for c in corrections(more, NOVEMBER)] == [
        ("A", 1_000_000, "2026-09")
    ]


def test_later_settings_correct_nothing():
    books = closed(september(), SEPTEMBER, idle_policy="weighted")
    dearer = replace(books, rates=(rate("99"),), tenants=(tenant("A", "another"),))
    assert corrections(dearer, OCTOBER) == ()


def test_days_of_the_open_month_show_a_correction_once():
    books = later(closed(september(), SEPTEMBER), LATE)
    days = [Period.parse(day.name) for day in OCTOBER.days()]
    found = [build_report(books, day).account("correction of 2026-09").billed_micro for day in days]
    assert found == [1_000_000] + [None] * 30


def test_a_bill_that_misses_the_corrections_says_where_they_are():
    """In another zone the next month begins after the instant at which corrections are booked."""
    books = later(closed(september(), Period.parse("2026-09", "Europe/Berlin")), LATE)
    told = "Corrections of closed periods are not on this bill but on the one that holds"
    assert any(note.startswith(told) for note in build_report(books, OCTOBER).notes())
    right = build_report(books, Period.parse("2026-10", "Europe/Berlin"))
    assert not any(note.startswith(told) for note in right.notes())


def test_corrections_of_another_policy_are_refused():
    """Two splits of the same steps differ everywhere, and that is no correction."""
    books = later(closed(september(), SEPTEMBER, policy="tokens"), LATE)
    with pytest.raises(InputError, match="closed with --policy tokens"):
        build_report(books, OCTOBER)
    assert build_report(books, OCTOBER, policy="tokens").account("correction of 2026-09").billed_micro == 1_000_000


def test_a_closed_period_says_that_its_frozen_bill_stands():
    report = build_report(closed(september(), SEPTEMBER), Period.parse("2026-09-01"))
    assert report.closed_as == "2026-09"
    assert any("2026-09 is closed" in note for note in report.notes())


late_lines = st.lists(
    st.builds(
        lambda account, name, ns, hours: line(account, name if account == "tenant" else "", ns, START + hours * HOUR),
        st.sampled_from(["tenant", "idle", "unobserved"]),
        st.sampled_from(["A", "B"]),
        st.integers(0, 10**12),
        st.integers(0, 2 * 720),
    ),
    max_size=6,
)


@settings(max_examples=15, deadline=None)
@given(late_lines, late_lines, st.sampled_from(["separate", "weighted", "even"]))
def test_all_bills_together_are_what_the_ledger_says(first, second, policy):
    books = september()
    signed = build_report(books, SEPTEMBER, idle_policy=policy).cells
    books = later(closed(books, SEPTEMBER, idle_policy=policy), *first)
    signed += build_report(books, OCTOBER, idle_policy=policy).cells
    books = later(closed(books, OCTOBER, idle_policy=policy), *second)
    signed += build_report(books, NOVEMBER, idle_policy=policy).cells
    open_books = replace(books, closings=())
    truth = [build_report(open_books, period, idle_policy=policy) for period in (SEPTEMBER, OCTOBER, NOVEMBER)]
    assert _billed(signed) == _billed(cell for report in truth for cell in report.cells)


def _billed(cells):
    total = Counter()
    for cell in cells:
        total[cell.account, cell.tenant_id] += (cell.amount_micro or 0) + (cell.idle_micro or 0)
    return {key: value for key, value in total.items() if value}


def test_cells_survive_json():
    cells = build_report(september(), SEPTEMBER).cells
    assert cells
    assert cells_from_json(cells_to_json(cells)) == cells
    assert all(isinstance(cell, PricedCell) for cell in cells_from_json(cells_to_json(cells)))
