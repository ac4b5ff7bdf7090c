"""The HTML report: complete, safe, self-contained, and its printed amounts add up."""

import re
from decimal import Decimal
from html.parser import HTMLParser

from costing_bills import DAY, HOUR, OCTOBER, START, an_hour, books, line, rate
from hypothesis import given
from hypothesis import strategies as st

from farebox.costing.html import to_html
from farebox.costing.html_charts import round_step
from farebox.costing.report import build_report
from farebox.events import Budget, Capacity, Tenant, TokenPrice

VOID = {"meta", "line", "rect"}
ATTACK = "</td><script>alert('\x1b[31m')</script>"


class Page(HTMLParser):
    """Rows of cells, tags that were opened, and whether every tag was closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.tags, self.open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID or (tag == "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    def row(self, name):
        return next(row for row in self.rows if row[0] == name)


def page(bills, **options):
    return Page(to_html(build_report(bills, OCTOBER, **options)))


def test_it_is_one_well_formed_file_that_needs_nothing_else():
    text = to_html(build_report(books(an_hour()), OCTOBER))
    parsed = Page(text)
    assert parsed.open == []
    assert not {"script", "link", "img", "iframe"} & set(parsed.tags)
    assert not re.search(r"https?:|url\(|@import|src=|href=", text)
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_names_cannot_do_anything():
    bills = books([line(tenant_id=ATTACK, gpu_ns=HOUR)], tenants=(Tenant(ATTACK, ATTACK, ATTACK, None, None, 0, None),))
    text = to_html(build_report(bills, OCTOBER, ("tenant", "team")))
    assert "script" not in Page(text).tags
    assert "\x1b" not in text
    assert "&lt;script&gt;" in text


def test_printed_amounts_add_up_to_the_printed_total():
    lines = [x._replace(gpu_ns=x.gpu_ns * 37) for x in an_hour()]
    parsed = page(books(lines), idle_policy="weighted")
    amounts = [Decimal(parsed.row(name)[7].replace(",", "")) for name in ("a", "b", "idle", "overhead", "unobserved")]
    assert sum(amounts) == Decimal(parsed.row("total")[7]) == Decimal("147.63")
    assert amounts[2] == 0


def test_printed_hours_add_up_and_the_idle_policy_is_told():
    lines = [line(tenant_id=name, gpu_ns=5_400_000_000) for name in "abc"]
    page = to_html(build_report(books(lines), OCTOBER, idle_policy="even"))
    hours = [Decimal(text) for text in re.findall(r"<td>([0-9.]+)</td><td class=\"money\">", page)]
    assert sum(hours[:-1]) == hours[-1] and hours[-1] == Decimal("0.004")
    assert "Idle time is paid by head" in page


def test_it_says_what_no_tenant_pays_and_how_the_bill_was_made():
    text = to_html(
        build_report(books(an_hour(), capacities=(Capacity("h", "H100", 1, START, START + DAY, ""),)), OCTOBER)
    )
    for word in ("idle", "overhead", "unobserved", "3.99 USD per GPU-hour", "every line adds up"):
        assert word in text


def test_more_measured_than_declared_is_shown_as_a_problem():
    short = Capacity("h", "H100", 1, START, START + 60_000_000_000, "")
    text = to_html(build_report(books(an_hour(), capacities=(short,)), OCTOBER))
    assert "does not add up" in text
    assert "every line adds up" not in text


def test_without_a_rate_it_shows_gpu_hours_and_no_money():
    parsed = page(books(an_hour(), rates=()))
    assert parsed.row("total")[6] == "1.000"
    assert parsed.rows[0].count("GPU·h") == 1


def test_unknown_prices_are_named():
    price = TokenPrice("llama", "standard", "USD", 1_000_000, "1", None, "10", 0, None, "")
    lines = [*an_hour(), line(tenant_id="c", tier="fast", gpu_ns=1, prompt_tokens=3, output_tokens=3)]
    parsed = page(books(lines, prices=(price,)))
    assert parsed.row("c")[-1] == "no price"
    assert parsed.row("a")[-1] == "0.70"
    assert parsed.row("total")[-1] == "≥ 0.70"
    partly = [line(gpu_ns=HOUR), line(START + DAY, gpu_ns=HOUR, tenant_id="b")]
    unrated = page(books(partly, rates=(rate(to_ns=START + DAY),)))
    assert unrated.row("b")[7] == "no rate"
    assert unrated.row("total")[7] == "≥ 3.9900"


def test_budgets_and_days_are_drawn():
    team = Tenant("a", "a", "blue", None, None, 0, None)
    budget = Budget("blue", "2026-10", "UTC", "USD", 1_000_000, 1_200_000, 0)
    text = to_html(
        build_report(books([*an_hour(), *an_hour(START + DAY)], tenants=(team,), budgets=(budget,)), OCTOBER)
    )
    assert "above hard" in text
    assert text.count("<rect") == 2 * 3
    assert "2026-10-02: idle 1.8842" in text


def test_a_report_by_several_columns_names_every_one():
    parsed = page(books(an_hour()), by=("tenant", "model", "day"))
    assert parsed.rows[0][:3] == ["tenant", "model", "day"]
    assert parsed.row("a")[:3] == ["a", "llama", "2026-10-01"]


@given(st.integers(1, 10**18))
def test_grid_lines_are_few_and_round(highest):
    step = round_step(highest)
    assert 1 <= highest // step <= 8 or highest < 3
    assert str(step).rstrip("0") in ("1", "2", "5")
