"""Corrections: what arrives after a period was closed is on the next bill, once, and the sum of all bills is right."""

import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import pytest
from costing_books import HOUR, books_of, line, minutes, rate, tenant
from costing_helpers import make_run
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing.closing import PeriodClosed, PeriodOpen, check_reopen
from farebox.costing.closing_cells import cells_from_json, cells_to_json, freeze, thaw
from farebox.costing.corrections import corrections
from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.errors import InputError
from farebox.events import LEDGER, Closing, TeamRename

SEPTEMBER, OCTOBER, NOVEMBER = (Period.parse(f"2026-{month:02}") for month in (9, 10, 11))
START = SEPTEMBER.from_ns
TEAMS = [tenant("A", "x"), tenant("B", "y")]


def closed(books, period, **options):
    report = build_report(books, period, **options)
    version = 1 + sum(each[:4] == tuple(period) for each in books.reopened)
    closing = Closing(*period, version, 0, "", json.dumps(freeze(report, books)), None, None)
    return replace(books, closings=(*books.closings, closing))


def reopened(books, period):
    """The books after the period was reopened."""
    closing = check_reopen(books.closings, period)
    others = tuple(each for each in books.closings if each != closing)
    return replace(books, closings=others, reopened=(*books.reopened, closing._replace(reopened_ns=1, reason="a slip")))


def corrected(books, period):
    return [cell for correction in corrections(books, period) for cell in correction.cells]


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
    assert corrections(closed(september(), SEPTEMBER), OCTOBER) == []
    assert corrections(september(), OCTOBER) == []


def test_a_correction_that_was_billed_is_not_billed_again():
    books = closed(later(closed(september(), SEPTEMBER), LATE), OCTOBER)
    assert corrections(books, NOVEMBER) == []
    more = later(books, LATE._replace(tenant_id="A"))
    assert [(c.tenant_id, c.amount_micro, c.correction_of) for c in corrected(more, NOVEMBER)] == [
        ("A", 1_000_000, "2026-09")
    ]


def test_later_settings_correct_nothing():
    books = closed(september(), SEPTEMBER, idle_policy="weighted")
    dearer = replace(books, rates=(rate("99"),), tenants=(tenant("A", "another"),))
    assert corrections(dearer, OCTOBER) == []


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


def test_a_period_that_is_closed_far_ahead_keeps_no_corrections_for_itself():
    far = Period.parse("2027-03")
    books = later(closed(closed(september(), SEPTEMBER), far), LATE)
    assert [cell.amount_micro for cell in corrected(books, OCTOBER)] == [1_000_000]
    assert corrections(books, Period.parse("2027-04")) == []


def test_corrections_skip_what_is_closed_and_come_back_when_it_is_reopened():
    books = later(closed(closed(september(), SEPTEMBER), OCTOBER), LATE)
    assert [cell.amount_micro for cell in corrected(books, NOVEMBER)] == [1_000_000]
    again = reopened(books, OCTOBER)
    assert corrections(again, NOVEMBER) == []
    assert [cell.amount_micro for cell in corrected(again, OCTOBER)] == [1_000_000]


def test_a_period_whose_corrections_were_billed_is_reopened_after_that_bill():
    books = closed(later(closed(september(), SEPTEMBER), LATE), OCTOBER)
    with pytest.raises(PeriodClosed, match=r"on the closed bill of 2026-10.*reopen 2026-10 first"):
        check_reopen(books.closings, SEPTEMBER)
    again = reopened(reopened(books, OCTOBER), SEPTEMBER)
    assert corrections(again, OCTOBER) == []
    assert build_report(again, SEPTEMBER).total.requests == 3
    with pytest.raises(PeriodOpen, match=r"2026-09 .* is not closed; closed: nothing"):
        check_reopen(again.closings, SEPTEMBER)


def test_a_bill_says_which_one_it_replaces():
    notes = build_report(reopened(closed(september(), SEPTEMBER), SEPTEMBER), SEPTEMBER).notes()
    assert any("2026-09 was closed at 1970-01-01T00:00:00Z (version 1" in note and "a slip" in note for note in notes)


def test_a_longer_view_has_what_closed_bills_within_it_were_corrected_by():
    books = closed(later(closed(september(), SEPTEMBER), LATE), OCTOBER)
    autumn = Period.between(OCTOBER.from_ns, NOVEMBER.to_ns, name="autumn")
    report = build_report(later(books, LATE), autumn)
    assert report.account("correction of 2026-09").billed_micro == 2_000_000
    assert any("2026-10 within this period is closed" in note for note in report.notes())


def test_a_period_is_corrected_under_the_policy_it_was_closed_with():
    """Two splits of the same steps differ everywhere, and that is no correction."""
    books = closed(september(), SEPTEMBER, policy="tokens")
    under_tokens = later(books, LATE).ledger
    for policy in ("roofline", "sequence"):
        with pytest.raises(InputError, match="closed with --policy tokens"):
            build_report(books, OCTOBER, policy=policy)
        report = build_report(replace(books, ledgers={"tokens": under_tokens}), OCTOBER, policy=policy)
        assert report.account("correction of 2026-09").billed_micro == 1_000_000


def test_corrections_in_another_currency_are_refused_and_no_correction_is_not():
    books = replace(closed(september(), SEPTEMBER), rates=(rate("5", currency="EUR"),))
    assert build_report(books, OCTOBER).currency == "EUR"
    with pytest.raises(InputError, match=r"2026-09 was closed in USD.*in EUR"):
        build_report(later(books, LATE), OCTOBER)


def test_corrections_follow_a_team_to_its_new_name_and_are_billed_once():
    books = closed(later(closed(september(), SEPTEMBER), LATE), OCTOBER)
    renamed = replace(books, renames=(TeamRename("y", "z", START + HOUR, 0),))
    assert corrections(renamed, NOVEMBER) == []
    assert [(c.team, c.requests) for c in corrected(later(renamed, LATE), NOVEMBER)] == [("z", 3)]


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
        st.integers(0, 3 * 720),
    ),
    max_size=3,
)
MONTHS = (SEPTEMBER, OCTOBER, NOVEMBER, Period.parse("2026-12"))
deeds = st.lists(st.tuples(st.sampled_from(["close", "reopen"]), st.sampled_from(MONTHS[:3]), late_lines), max_size=6)


@tries(15)
@given(deeds, st.sampled_from(["separate", "weighted", "even"]))
def test_all_bills_together_are_what_the_ledger_says(todo, policy):
    """Whatever is closed and reopened in whatever order, and whatever comes late between."""
    books = september()
    for deed, month, late in todo:
        is_closed = any(each.period == month.name for each in books.closings)
        if deed == "close" and not is_closed:
            books = closed(books, month, idle_policy=policy)
        elif deed == "reopen" and is_closed:
            with suppress(PeriodClosed):
                books = reopened(books, month)
        books = later(books, *late)
    signed = {each.period: thaw(each).cells for each in books.closings}
    bills = [
        signed[month.name] if month.name in signed else build_report(books, month, idle_policy=policy).cells
        for month in MONTHS
    ]
    open_books = replace(books, closings=())
    truth = [build_report(open_books, month, idle_policy=policy).cells for month in MONTHS]
    assert _billed(cell for cells in bills for cell in cells) == _billed(cell for cells in truth for cell in cells)


def _billed(cells):
    total = Counter()
    for cell in cells:
        total[cell.account, cell.tenant_id] += (cell.amount_micro or 0) + (cell.idle_micro or 0)
    return {key: value for key, value in total.items() if value}


def test_cells_survive_json():
    table = build_report(september(), SEPTEMBER).cell_table
    assert table.num_rows
    assert cells_from_json(json.loads(json.dumps(cells_to_json(table)))).equals(table.combine_chunks())
    with pytest.raises(ValueError, match="these are no cells"):
        cells_from_json({"columns": ["day"], "rows": []})
