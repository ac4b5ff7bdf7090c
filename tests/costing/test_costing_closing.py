"""Closings: what was signed stays as it was, to the byte."""

from decimal import Decimal
from io import StringIO

import pytest
from costing_bills import DAY, HOUR, MINUTE_NS, OCTOBER, START, an_hour, books, line, rate
from rich.console import Console

from farebox.costing.closing import (
    ClosingChanged,
    PeriodClosed,
    PeriodOpen,
    check_reopen,
    close,
    closed_text,
    find_closing,
    verify,
)
from farebox.costing.closing_cells import thaw
from farebox.costing.closing_report import can_group, grouped, thaw_report
from farebox.costing.focus import to_focus_csv, to_focus_parquet
from farebox.costing.formats import to_csv, to_json, to_parquet
from farebox.costing.html import to_html
from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.costing.table import render
from farebox.errors import InputError
from farebox.events import Budget, Capacity, Tenant, TokenPrice

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


def rich_books(**more):
    """A month with everything that a bill can hold."""
    return books(
        [*october(), *an_hour(START + DAY, host="g", engine_id="f")],
        (rate("3.99", to_ns=START + DAY), rate("4.29", from_ns=START + DAY)),
        tenants=(Tenant("a", "Ä", "x", "47", 500, 0, None),),
        prices=(TokenPrice("llama", "", "USD", 1000, "1", None, "2", 0, None, ""),),
        budgets=(Budget("x", "2026-10", "UTC", "USD", 1, 9**9, 0),),
        capacities=(Capacity("g", "H100", 1, START + DAY, START + 2 * DAY, ""),),
        **more,
    )


@pytest.mark.parametrize("by", [("tenant", "team"), ("hour", "host")])
def test_every_format_of_a_closed_bill_comes_from_what_was_frozen(by):
    signed = rich_books()
    closing = close(signed, OCTOBER, by, "weighted", now_ns=NOW)
    report, again = build_report(signed, OCTOBER, by, "weighted"), thaw_report(closing)
    for write in (to_csv, to_json, to_html, to_focus_csv, to_parquet, to_focus_parquet):
        assert write(again) == write(report)
    page = StringIO()
    render(again, Console(file=page, width=40, color_system=None))
    assert page.getvalue() == closed_text(closing, "table")


def test_a_closed_bill_can_be_grouped_otherwise_without_changing_an_amount():
    closing = close(rich_books(), OCTOBER, ("tenant",), "weighted", now_ns=NOW)
    report = grouped(closing, ("team",))
    assert {x.keys[0] for x in report.lines if x.account == "tenant"} == {"x", "unattributed"}
    assert report.total.billed_micro == thaw_report(closing).total.billed_micro
    assert "these are its lines, by team" in report.remarks[0]
    assert can_group(closing, ("day",)) and not can_group(closing, ("hour",))


def test_a_closed_bill_is_asked_by_its_own_options():
    frozen = thaw(close(rich_books(), OCTOBER, ("team",), "weighted", Decimal("4.290"), "USD", now_ns=NOW))
    assert frozen.is_asked(None, None, None, None, None)
    assert frozen.is_asked(("team",), "weighted", Decimal("4.29"), "USD", "roofline")
    others = [(("tenant",), *[None] * 4), (None, "even", *[None] * 3), (None, None, Decimal(5), None, None)]
    others += [(*[None] * 3, "EUR", None), (*[None] * 4, "tokens")]
    assert not any(frozen.is_asked(*other) for other in others)


def test_the_next_close_after_a_reopening_is_a_new_version_and_says_what_it_replaces():
    first = close(books(october()), OCTOBER, now_ns=NOW)
    old = first._replace(reopened_ns=NOW + 1, reason="the lease was missing")
    second = close(books(october(), reopened=(old,)), OCTOBER, now_ns=NOW + HOUR)
    assert (first.version, second.version) == (1, 2)
    told = (
        f"(version 1, SHA-256 {first.content_hash[:12]}…) and reopened at 2026-11-01T01:00:00Z: the lease was missing."
    )
    assert told in closed_text(second, "table")


def test_a_period_of_the_same_name_in_another_zone_is_refused():
    """Corrections are told apart by name."""
    first = close(books(an_hour()), Period.parse("2026-10-05", "Pacific/Kiritimati"), early=True, now_ns=NOW)
    with pytest.raises(PeriodClosed, match="write FROM/TO"):
        close(books(an_hour(), closings=(first,)), Period.parse("2026-10-05", "Pacific/Pago_Pago"), early=True)


def test_a_closing_of_an_unknown_layout_is_refused():
    closing = close(books(october()), OCTOBER, now_ns=NOW)
    older = closing._replace(content=closing.content.replace('"format":2', '"format":1'))
    with pytest.raises(InputError, match="another version of Farebox"):
        thaw(older)
    assert check_reopen([older], OCTOBER) == older


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


def test_the_closed_table_is_shown_as_it_was_printed_when_it_was_closed():
    closing = close(books(october()), OCTOBER, now_ns=NOW)
    page = StringIO()
    render(build_report(books(october()), OCTOBER), Console(file=page, width=40, color_system=None))
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
    for use in (verify, lambda c: closed_text(c, "csv"), lambda c: closed_text(c, "table")):
        with pytest.raises(ClosingChanged, match="2026-10 was changed"):
            use(forged)
