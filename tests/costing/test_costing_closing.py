"""Closings: what was signed stays as it was, to the byte."""

from io import StringIO

import pytest
from costing_bills import DAY, HOUR, MINUTE_NS, OCTOBER, START, an_hour, books, line, rate
from rich.console import Console

from farebox.costing.closing import (
    ClosingChanged,
    PeriodClosed,
    PeriodOpen,
    close,
    closed_text,
    find_closing,
    render_closed,
    verify,
)
from farebox.costing.formats import to_csv, to_json
from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.events import Tenant

NOVEMBER = Period.parse("2026-11")
LAST = OCTOBER.to_ns - MINUTE_NS
NOW = OCTOBER.to_ns + HOUR


def october(*more):
    return [*an_hour(), line(LAST, gpu_ns=1), *more]


def test_a_closing_holds_the_bill_as_it_was_written():
    open_books = books(october())
    closing = close(open_books, OCTOBER, now_ns=NOW)
    report = build_report(open_books, OCTOBER)
    assert closed_text(closing, "csv") == to_csv(report)
    assert closed_text(closing, "json") == to_json(report)
    assert (closing.period, closing.tz, closing.closed_ns) == ("2026-10", "UTC", NOW)
    assert closing == close(open_books, OCTOBER, now_ns=NOW)


def test_what_comes_later_leaves_the_closed_bill_byte_identical():
    closing = close(books(october()), OCTOBER, now_ns=NOW)
    shown = [closed_text(closing, form) for form in ("table", "csv", "json")]
    later = books(
        october(line(START, tenant_id="late", gpu_ns=HOUR), *an_hour(NOVEMBER.from_ns)),
        rates=(rate("9.99"),),
        tenants=(Tenant("a", "renamed", "other", None, None, 0, None),),
        closings=(closing,),
    )
    found = find_closing(later.closings, OCTOBER)
    assert [closed_text(found, form) for form in ("table", "csv", "json")] == shown
    corrections = [x for x in build_report(later, NOVEMBER).lines if x.account.startswith("correction")]
    assert [(x.account, x.keys, x.amount_micro) for x in corrections] == [
        ("correction of 2026-10", ("late",), 3_990_000)
    ]


def test_the_closed_table_is_printed_from_the_content_alone():
    closing = close(books(october()), OCTOBER, now_ns=NOW)
    page = StringIO()
    render_closed(closing, Console(file=page, width=40, color_system=None))
    assert page.getvalue() == closed_text(closing, "table")
    assert "overhead" in page.getvalue()


@pytest.mark.parametrize("name", ["2026-10", "2026", "2026-10-05"])
def test_a_period_is_closed_once(name):
    closing = close(books(october()), OCTOBER, now_ns=NOW)
    with pytest.raises(PeriodClosed, match=r"overlaps 2026-10 .*closed at 2026-11-01T01:00:00Z"):
        close(books(october(), closings=(closing,)), Period.parse(name), early=True)


def test_a_neighbouring_period_can_be_closed():
    closing = close(books(october()), OCTOBER, now_ns=NOW)
    both = books(october(line(NOVEMBER.from_ns, gpu_ns=5)), closings=(closing,))
    second = close(both, Period.parse("2026-11-01"), early=True, now_ns=NOW)
    assert (second.from_ns, second.to_ns) == (OCTOBER.to_ns, OCTOBER.to_ns + DAY)


def test_a_period_that_is_not_over_is_refused_unless_told():
    with pytest.raises(
        PeriodOpen, match=r"2026-10 ends at 2026-11-01T00:00:00Z, but the newest event is from 2026-10-01"
    ):
        close(books(an_hour()), OCTOBER)
    with pytest.raises(PeriodOpen, match="the ledger is empty"):
        close(books([]), OCTOBER)
    assert close(books(an_hour()), OCTOBER, early=True, now_ns=NOW).period == "2026-10"


def test_a_changed_content_is_told():
    closing = close(books(october()), OCTOBER, now_ns=NOW)
    verify(closing)
    forged = closing._replace(content=closing.content.replace("1330000", "1230000"))
    assert forged != closing
    for use in (verify, lambda c: closed_text(c, "csv"), lambda c: render_closed(c, Console(file=StringIO()))):
        with pytest.raises(ClosingChanged, match="2026-10 was changed"):
            use(forged)
