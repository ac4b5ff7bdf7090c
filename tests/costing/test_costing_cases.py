"""Trouble that other cost tools have had, each with its input: cases C and D and G of `tests/cases`."""

import io
from collections import defaultdict
from decimal import Decimal

import pytest
from costing_books import HOUR, at, books_of, line, minutes, price, rate, read_case, read_prices, tenant
from costing_helpers import make_run
from rich.console import Console

from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.costing.table import render
from farebox.events import TeamRename


def api_of(rows, prices, by=("tenant",)):
    """A report of token rows: (tenant, tier, model, at, prompt, cached, output)."""
    lines = [
        line(
            "tenant",
            name,
            0,
            start,
            tier=tier,
            model=model,
            prompt_tokens=prompt,
            cached_tokens=cached,
            output_tokens=out,
        )
        for name, tier, model, start, prompt, cached, out in rows
    ]
    return build_report(books_of(lines, prices=prices), by=by)


def printed(report):
    page = io.StringIO()
    render(report, Console(file=page, force_terminal=False))
    return page.getvalue()


def test_c01_cached_tokens_are_part_of_the_prompt():
    (event,) = read_case("C01.events.jsonl")
    usage = event["usage"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    row = ("a", "standard", "m", at("2026-05-01"), usage["prompt_tokens"], cached, usage["completion_tokens"])
    report = api_of([row], read_prices("C01.prices.csv"))
    assert report.tenants.api_micro == 93_750
    assert report.tenants.tokens == 241_500


def test_c03_unknown_cache_counts_pay_the_full_price():
    rows = [
        (
            event["request_id"],
            "standard",
            "m",
            0,
            usage["prompt_tokens"],
            (usage["prompt_tokens_details"] or {}).get("cached_tokens", 0),
            0,
        )
        for event in read_case("C03.events.jsonl")
        for usage in [event["usage"]]
    ]
    report = api_of(rows, [price(fresh="1", cached="0.1")])
    assert [x.api_micro for x in report.lines[:3]] == [1000, 1000, 190]


def test_c11_no_price_is_not_free():
    rows = [
        ("t", "standard", event["model"], at("2026-05-01"), event["input_tokens"], 0, event["output_tokens"])
        for event in read_case("C11.events.jsonl")
    ]
    report = api_of(rows, read_prices("C11.prices.csv"), ("model",))
    found = {x.keys[0]: (x.api_micro, x.unpriced_tokens, x.free_tokens) for x in report.lines if x.account == "tenant"}
    assert found == {"f": (0, 0, 501_000), "p": (1_500_000, 0, 0), "u": (None, 37_400_000, 0)}
    assert [each.tokens for each in report.unpriced] == [37_400_000]
    text = printed(report)
    assert "≥ 1.500000 USD (1 model unpriced: u standard: 37,400,000 tokens)" in text
    by_model = {row.split()[0]: row for row in text.splitlines() if row.split()}
    assert "no price" in by_model["u"]
    assert "free" in by_model["f"]
    assert by_model["total"].split()[-2:] == ["≥", "1.5000"]


def test_c13_a_new_price_leaves_the_past_alone():
    rows = [
        (
            event["request_id"],
            "standard",
            "x",
            at(event["finished_at"]),
            event["input_tokens"],
            0,
            event["output_tokens"],
        )
        for event in read_case("C13.events.jsonl")
    ]
    report = api_of(rows, read_prices("C13.prices.csv"))
    assert [x.api_micro for x in report.lines[:4]] == [None, 8_000_000, 6_000_000, 6_000_000]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("UTC", [300, 6_000, 19_200]),
        ("Asia/Kolkata", [100, 3_000, 22_400]),
        ("America/Los_Angeles", [700, 12_000, 12_800]),
    ],
)
def test_c15_days_are_local_days(zone, expected):
    lines = [
        line("tenant", "a", 0, at(event["finished_at"]), output_tokens=event["output_tokens"])
        for event in read_case("C15.events.jsonl")
    ]
    books = books_of(lines)
    report = build_report(books, Period.parse("2026-05", zone), ("day",))
    assert [x.output_tokens for x in report.lines if x.account == "tenant"] == expected
    days = [Period.parse(x.keys[0], zone) for x in report.lines if x.account == "tenant"]
    assert sum(build_report(books, day).total.output_tokens for day in days) == report.total.output_tokens == 25_500
    assert zone in printed(report).splitlines()[0]


def test_c17_tiny_amounts_add_up_exactly():
    case = read_case("C17.json")
    each = case["requests"]
    rows = [(f"t{n}", "standard", "m", 0, each["input_tokens_each"], 0, 0) for n in range(each["count"])]
    report = api_of(rows, [price(fresh=each["price_per_1m_input"])])
    assert report.tenants.api_micro == int(Decimal(each["total"]) * 10**6)
    assert sum(cell.api_micro for cell in report.cells) == 1500
    small = [("a", "standard", "m", 0, 10**9, 0, 0), ("b", "standard", "m", 0, 1, 0, 0)]
    row = next(row for row in printed(api_of(small, [price(fresh="150")])).splitlines() if row.startswith("b "))
    assert row.split()[-4] == "<0.01"


def test_c17_equal_teams_pay_equal_parts_of_a_round_sum():
    split = read_case("C17.json")["split"]
    thirds = books_of(
        [line("tenant", name, HOUR) for name in "abc"], [make_run(gpus=3, ended_ns=HOUR)], rates=[rate("100/3")]
    )
    report = build_report(thirds)
    assert report.total.amount_micro == report.invoice_micro == int(Decimal(split["total"]) * 10**6)
    assert [row.split()[8] for row in printed(report).splitlines()[5:8]] == split["rows"]


def test_c18_renamed_and_deleted_teams_keep_their_history():
    moments = {(row["action"], row["team_id"]): (at(row["at"]), row["value"]) for row in read_case("C18.teams.csv")}
    created, first = moments["create", "t1"]
    renamed, newest = moments["rename", "t1"]
    deleted, _ = moments["delete", "t2"]
    rows = [
        tenant("k1", first, created),
        tenant("k2", newest, moments["rotate", "t1"][0]),
        tenant("k9", "Labs", created, deleted),
    ]
    lines = [line("tenant", e["key"], 0, at(e["at"]), output_tokens=e["tokens"]) for e in read_case("C18.events.jsonl")]
    books = books_of(lines, tenants=rows, renames=[TeamRename(first, newest, renamed, renamed)])
    report = build_report(books, Period.parse("2026-05"), ("team",))
    assert {x.keys[0]: x.output_tokens for x in report.lines if x.account == "tenant"} == {
        "Discovery": 300,
        "Labs": 300,
    }
    assert report.total.output_tokens == 600
    assert "Discovery (formerly Search)" in printed(report)
    tenants = printed(build_report(books, Period.parse("2026-05")))
    assert "k9 · k9 (deleted)" in tenants


def test_c19_traffic_without_a_team_is_a_line_of_its_own():
    events = read_case("C19.events.jsonl")
    rows = [tenant(event["request_id"], event["team"]) for event in events if "team" in event]
    lines = [line("tenant", event["request_id"], 0, output_tokens=event["tokens"]) for event in events]
    report = build_report(books_of(lines, tenants=rows), by=("team",))
    found = {x.keys[0]: x.output_tokens for x in report.lines if x.account == "tenant"}
    assert found == {"unattributed": 60, "blue": 40, "Blue": 50}
    assert report.total.output_tokens == 150


def test_c23_the_served_tier_decides_the_price():
    rows = [
        (event["request_id"], event["served_tier"], "m", 0, event["input_tokens"], 0, event["output_tokens"])
        for event in read_case("C23.events.jsonl")
    ]
    report = api_of(rows, read_prices("C23.prices.csv"))
    assert [x.api_micro for x in report.lines[:4]] == [3_000_000, 1_500_000, 6_000_000, None]


def test_c32_a_price_means_the_same_in_every_unit():
    prices = read_prices("C32.prices.csv")
    report = api_of([(p.model, "standard", p.model, 0, 1000, 0, 0) for p in prices], prices)
    assert [x.api_micro for x in report.lines[:3]] == [2_000, 2_000, 2_000]


def test_c34_currencies_stay_apart():
    case = read_case("C34.json")
    gpu, tokens = case["gpu_rate"], case["prices"]
    books = books_of(
        minutes("tenant", "a", 0, HOUR, prompt_tokens=1000),
        rates=[rate(gpu["amount"], currency=gpu["currency"])],
        prices=[price(fresh=tokens["input_per_1m"], currency=tokens["currency"])],
    )
    report = build_report(books)
    assert (report.currency, report.total.amount_micro) == ("EUR", 2_200_000)
    assert (report.api_currency, report.total.api_micro) == ("USD", 60_000)
    assert "2.20 EUR per GPU-hour." in report.notes()


@pytest.mark.parametrize(("currency", "priced"), [("USD", 1_000_000), ("EUR", 3_000_000), ("CHF", None)])
def test_a_price_list_of_two_currencies_has_no_price_for_what_cannot_be_added(currency, priced):
    """One row in another currency must not keep anybody from the bill."""
    lines = [line("tenant", name, 0, model=name, prompt_tokens=1_000_000) for name in "mn"]
    mixed = [price(), price("n", fresh="3", currency="EUR")]
    report = build_report(books_of(lines, prices=mixed), rate=Decimal(1), currency=currency)
    unpriced = [name for name, known in (("m", "USD"), ("n", "EUR")) if known != currency]
    assert (report.total.api_micro, report.api_currency) == (priced, None if priced is None else currency)
    assert [each.model for each in report.unpriced] == unpriced
    assert any(note.startswith("Token prices in") and "cannot be added" in note for note in report.notes())
    assert ("≥" in printed(report)) == (priced is not None)


def test_d03_windows_are_half_open_and_add_up():
    case = read_case("D03.json")
    start, end = (at(f"2026-05-01T{text[:5]}") for text in case["window"])
    books = books_of(minutes("tenant", "a", start - HOUR, end + HOUR), rates=[rate("60")])
    middle = start + (end - start) // 3
    windows = [Period.between(a, b) for a, b in [(start, end), (start, middle), (middle, end)]]
    whole, *halves = [build_report(books, window).total.amount_micro for window in windows]
    assert whole == int(case["expect_minutes"] * 10**6) == sum(halves)


def test_d09_busy_time_and_what_was_reserved_differ_and_both_are_named():
    case = read_case("D09.json")
    busy, end = case["busy_minutes"] * HOUR // 60, case["reserved_minutes"] * HOUR // 60
    books = books_of(
        [*minutes("tenant", "a", 0, busy), *minutes("idle", "", busy, end)],
        rates=[rate(case["rate_per_hour"])],
        tenants=[tenant("a", reserved=1000)],
    )
    report = build_report(books, idle_policy="reservation")
    usage, allocation = (int(Decimal(case["expect"][key]) * 10**6) for key in ("usage", "allocation"))
    assert (report.lines[0].amount_micro, report.lines[0].billed_micro) == (usage, allocation)
    assert "reserved" in printed(report).splitlines()[1]


@pytest.mark.parametrize("busy", [100, 50, 20, 10])
def test_g09_a_million_tokens_cost_more_the_longer_the_gpu_idles(busy):
    case = read_case("G09.json")
    tokens = case["tok_per_s_busy"] * 36 * busy
    used = line("tenant", "a", HOUR * busy // 100, output_tokens=tokens)
    books = books_of([used, line("idle", "", HOUR - HOUR * busy // 100)], [make_run(ended_ns=HOUR)])
    a = build_report(books, rate=Decimal(case["rate_per_hour"])).lines[0]
    per_million = Decimal(a.loaded_micro) / tokens
    assert round(per_million, 3) == Decimal(str(case["expect_per_1m"][str(busy)]))
    assert round(Decimal(a.amount_micro) / tokens, 3) == Decimal("0.992")
    assert a.per_1k_loaded == round(per_million / 1000, 6)


def test_g09_no_tokens_have_no_price_per_token():
    a = build_report(books_of(minutes("tenant", "a", 0, HOUR)), rate=Decimal(1)).lines[0]
    assert (a.per_1k, a.per_1k_loaded, a.per_1k_out) == (None, None, None)


def test_g16_usage_and_all_in_are_both_shown_and_the_billed_one_is_named():
    case = read_case("G16.json")
    busy = HOUR * 37 // 100
    books = books_of(
        [line("tenant", "a", busy, output_tokens=case["tokens"]), line("idle", "", HOUR - busy)],
        [make_run(ended_ns=HOUR)],
    )
    for policy, billed in (("separate", "3.70"), ("weighted", "10.00")):
        report = build_report(books, rate=Decimal(case["bill"]), idle_policy=policy)
        a = report.lines[0]
        assert (a.per_1k * 1000, a.per_1k_loaded * 1000) == (Decimal("3.70"), Decimal("10.00"))
        assert Decimal(a.billed_micro) / case["tokens"] == Decimal(billed)
        assert report.account("idle").amount_micro == int(Decimal(case["expect"]["idle"]) * 10**6)
    assert "paid by the tenants" in printed(report).splitlines()[1]


def test_ten_thousand_tenants_are_a_report():
    lines = [line("tenant", f"t{n:05}", 10**6 + n, n % 1440 * 60 * 10**9, prompt_tokens=n) for n in range(10_000)]
    walls = defaultdict(int)
    for each in lines:
        walls[each.minute_ns] += each.gpu_ns
    runs = [
        make_run(run_id=str(n), started_ns=start, ended_ns=start + ns) for n, (start, ns) in enumerate(walls.items())
    ]
    report = build_report(books_of(lines, runs, rates=[rate("3.99")]))
    rows = printed(report).splitlines()
    assert sum(row.startswith("t0") for row in rows) == 10_000
    assert report.check() == ()
