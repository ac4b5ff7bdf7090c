"""Budgets: spent so far, how fast, and the day on which a limit will be reached."""

import pytest
from costing_books import DAY, at, books_of, minutes, rate, tenant
from costing_helpers import make_run

from farebox.costing.budgets import status_of
from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.events import Budget

OCTOBER = at("2026-10-01")


def budget(soft=None, hard=None, team="x", period="2026-10", tz="UTC", currency="USD"):
    return Budget(team, period, tz, currency, soft, hard, 0)


def test_the_pace_says_when_a_limit_is_reached():
    status = status_of(budget(20_000_000, 40_000_000), 10_000_000, "USD", OCTOBER + 10 * DAY)
    assert (status.per_day_micro, status.state) == (1_000_000, "within")
    assert (status.soft_day, status.hard_day) == ("2026-10-21", None)
    assert 2 * (status.spent_micro or 0) == status.budget.soft_micro


@pytest.mark.parametrize(
    ("spent", "state"),
    [(20, "within"), (21, "above soft"), (30, "above soft"), (31, "above hard"), (None, "unknown")],
)
def test_a_limit_is_broken_above_it(spent, state):
    assert status_of(budget(20, 30), spent, "USD", OCTOBER + DAY).state == state


def test_before_its_period_a_budget_has_no_pace():
    status = status_of(budget(5), 0, "USD", OCTOBER - DAY)
    assert (status.per_day_micro, status.soft_day, status.hard_day) == (None, None, None)


def test_the_days_are_those_of_the_budgets_zone():
    auckland = status_of(budget(11_000_000, tz="Pacific/Auckland"), 10_000_000, "USD", OCTOBER + 10 * DAY)
    assert auckland.from_ns == at("2026-09-30T11:00")
    assert auckland.soft_day == "2026-10-12"


def test_a_report_shows_the_budgets_of_its_time_with_their_whole_spending():
    lines = [*minutes("tenant", "A", OCTOBER, OCTOBER + DAY), *minutes("idle", "", OCTOBER + DAY, OCTOBER + 2 * DAY)]
    books = books_of(
        lines,
        [make_run(started_ns=OCTOBER, heartbeat_ns=OCTOBER + 2 * DAY)],
        rates=[rate("1")],
        tenants=[tenant("A", "x")],
        budgets=[budget(100_000_000), budget(1, 2, team="y"), budget(1, period="2026-12")],
    )
    second_day = Period.parse("2026-10-02")
    x, y = build_report(books, second_day).budgets
    assert (x.spent_micro, x.per_day_micro, x.soft_day) == (24_000_000, 12_000_000, "2026-10-09")
    assert (y.spent_micro, y.state) == (0, "within")
    weighted = build_report(books, second_day, idle_policy="weighted")
    assert weighted.budgets[0].spent_micro == 24_000_000
    assert any("Budget of x for 2026-10: within, 24.000000 USD spent" in note for note in weighted.notes())


def test_spending_without_a_rate_is_unknown_and_not_nothing():
    books = books_of(minutes("tenant", "A", OCTOBER, OCTOBER + DAY), tenants=[tenant("A", "x")], budgets=[budget(1)])
    (status,) = build_report(books, Period.parse("2026-10-01")).budgets
    assert (status.spent_micro, status.state, status.reason) == (None, "unknown", "some of its time has no rate")


def test_a_budget_in_another_currency_is_unknown_and_says_why():
    """One wrong setting must not keep anybody from the bill."""
    status = status_of(budget(1, currency="EUR"), 5, "USD", OCTOBER + DAY)
    assert (status.spent_micro, status.per_day_micro, status.state) == (None, None, "unknown")
    assert status.reason == "the budget is in EUR, the bill in USD: there is no conversion rate"
