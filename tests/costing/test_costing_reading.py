"""The bill as whoever pays it reads it: what the total holds is on a line, and rates are those used."""

import io
from dataclasses import replace

import pytest
from costing_books import DAY, HOUR, books_of, line, minutes, rate
from costing_helpers import make_run
from rich.console import Console

from farebox.costing.closing import close
from farebox.costing.html import to_html
from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.costing.table import render
from farebox.events import LEDGER

SEPTEMBER, OCTOBER = Period.parse("2026-09"), Period.parse("2026-10")


def printed(report):
    page = io.StringIO()
    render(report, Console(file=page))
    return page.getvalue()


@pytest.fixture
def corrected():
    """An October with a tenant's hour, and a late request of the closed September."""
    lines = [
        *minutes("tenant", "A", SEPTEMBER.from_ns, SEPTEMBER.from_ns + HOUR),
        *minutes("tenant", "A", OCTOBER.from_ns, OCTOBER.from_ns + HOUR),
    ]
    runs = [
        make_run(run_id=str(n), started_ns=p.from_ns, ended_ns=p.from_ns + HOUR)
        for n, p in enumerate((SEPTEMBER, OCTOBER))
    ]
    card = [
        rate("6", end=OCTOBER.from_ns),
        rate("7", OCTOBER.from_ns),
        rate("9", scope="engine", name="x", currency="EUR"),
    ]
    books = books_of(lines, runs, rates=card)
    books = replace(books, closings=(close(books, SEPTEMBER, now_ns=OCTOBER.from_ns),))
    late = line("tenant", "B", HOUR, SEPTEMBER.from_ns + HOUR, requests=3, prompt_tokens=5000, output_tokens=400)
    run = make_run(engine_id="f", started_ns=SEPTEMBER.from_ns + HOUR, ended_ns=SEPTEMBER.from_ns + 2 * HOUR)
    rows = [*LEDGER.from_arrow(books.ledger), late]
    return build_report(replace(books, ledger=LEDGER.to_arrow(rows), runs=(*books.runs, run)), OCTOBER)


def test_what_corrects_riders_has_their_tokens_and_the_rate_it_was_made_at(corrected):
    page = printed(corrected)
    (row,) = (text for text in page.splitlines() if "correction of 2026-09" in text and "per GPU-hour" not in text)
    assert "5,000" in row and "400" in row and "%" not in row
    assert corrected.correction_rates == {"2026-09": ("6",)}
    assert corrected.notes()[:2] == ("7 USD per GPU-hour.", "6 USD per GPU-hour for the correction of 2026-09.")
    html = to_html(corrected)
    assert html.count(">5,000<") == 2, "on its row and in the total"


def test_a_footer_names_only_rates_that_were_used():
    card = [rate("3", scope="engine", name="x", currency="EUR"), rate("4"), rate("5", scope="host", name="elsewhere")]
    books = books_of(minutes("tenant", "A", 0, HOUR), rates=card)
    assert build_report(books).notes()[0] == "4 USD per GPU-hour."
    nothing = build_report(books, Period.between(DAY, 2 * DAY))
    assert nothing.notes()[0] == "No GPU was paid for in this period, so no rate was used."
    assert nothing.total.billed_micro == 0


def test_an_empty_bill_is_in_the_currency_of_the_rates():
    books = books_of([], [], rates=[rate("3", currency="EUR")])
    assert build_report(books, OCTOBER).currency == "EUR"
    assert (
        build_report(replace(books, rates=(*books.rates, rate("1", scope="host", name="h"))), OCTOBER).currency == "USD"
    )


def test_a_small_part_is_never_told_as_none():
    lines = [line("tenant", "A", HOUR), line("tenant", "B", 10**9, basis="estimated")]
    notes = build_report(books_of(lines, [make_run(ended_ns=HOUR + 10**9)], rates=[rate("4")])).notes()
    assert "Rests on: >99.9 % single steps, <0.1 % estimates." in notes
