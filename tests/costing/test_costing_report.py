"""The report: lines that add up to the invoice, said in money, in GPU time, in files and on a screen."""

import ast
import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from costing_helpers import make_run
from hypothesis import given
from hypothesis import strategies as st
from properties import tries
from rich.console import Console

import farebox.costing
from farebox.costing.books import Books
from farebox.costing.formats import plain, to_csv, to_json, to_parquet
from farebox.costing.line import ACCOUNTS, COLUMNS
from farebox.costing.periods import Period
from farebox.costing.report import Report, build_report
from farebox.costing.table import render
from farebox.events import LEDGER, MINUTE_NS, LedgerLine, TokenPrice

HOUR = 3_600_000_000_000
DAY = 24 * HOUR
RATE = Decimal("3.99")
DRAWN = {"html", "html_charts"}
"""Pixels and percentages."""
STATISTICAL = {"run_summary", "endpoint_summary", "causes", "focus_check"}
"""Means and ratios in sentences."""
MODULES = {path.stem for path in Path(farebox.costing.__file__).parent.glob("*.py")} - DRAWN - STATISTICAL


def entry(account, tenant, gpu_ns, prompt=0, output=0, cached=0, requests=0, minute=0, basis="step", **names):
    is_tenant = account == "tenant"
    line = LedgerLine(
        minute_ns=minute * MINUTE_NS,
        engine_id="e1",
        host="h1",
        gpu_type="H100",
        account=account,
        tenant_id=tenant,
        tier="standard" if is_tenant else "",
        model="llama",
        phase="decode" if is_tenant else "",
        gpu_ns=gpu_ns,
        prompt_tokens=prompt,
        cached_tokens=cached,
        output_tokens=output,
        requests=requests,
        kv_block_ns=0,
        basis=basis,
    )
    return line._replace(**names)


HOUR_LEDGER = [
    entry("tenant", "A", 1_200_000_000_001, 200_000, 50_000, 100_000, 300),
    entry("tenant", "B", 600_000_000_000, 1_000, 0, 0, 1, basis="estimated"),
    entry("overhead", "A", 99_999_999_999),
    entry("idle", "", 1_700_000_000_000),
]


def report_of(entries=HOUR_LEDGER, rate=RATE, by=("tenant",), runs=None, **options) -> Report:
    books = Books(LEDGER.to_arrow(entries), tuple(runs or [make_run(ended_ns=HOUR)]), **options.pop("settings", {}))
    if "window" in options:
        options["period"] = Period.between(*options.pop("window"))
    return build_report(books, by=by, rate=rate, **options)


def test_the_idle_hour_is_billed_exactly():
    report = report_of()
    assert [(line.account, line.keys, line.amount_micro, line.loaded_micro) for line in report.lines] == [
        ("tenant", ("A",), 1_330_000, 2_586_111),
        ("tenant", ("B",), 665_000, 1_293_056),
        ("idle", ("",), 1_884_167, 0),
        ("overhead", ("",), 110_833, 110_833),
        ("unobserved", ("",), 0, 0),
    ]
    assert report.invoice_micro == report.total.amount_micro == report.total.loaded_micro == 3_990_000
    assert (report.residual_gpu_ns, report.residual_micro, report.check()) == (0, 0, ())


def test_prices_per_1k_are_busy_only_and_with_idle():
    a, b = report_of().lines[:2]
    assert (a.per_1k, a.per_1k_loaded, a.per_1k_out) == (Decimal("0.005320"), Decimal("0.010344"), Decimal("0.026600"))
    assert (b.per_1k_out, b.per_1k) == (None, Decimal("0.665000"))
    assert report_of().tenants.per_1k == Decimal("0.007948")


def test_without_a_rate_there_is_gpu_time_and_no_money():
    report = report_of(rate=None)
    a = report.lines[0]
    assert (report.unit, a.amount_micro, a.loaded_micro, report.invoice_micro, report.residual_micro) == (
        "GPU-ms",
        None,
        None,
        None,
        None,
    )
    assert (a.per_1k, a.per_1k_loaded) == (Decimal("4800.000000"), Decimal("9333.333333"))
    assert "No rate" in report.notes()[0]


def test_what_does_not_add_up_is_reported_and_never_hidden():
    short = report_of(HOUR_LEDGER[:3])
    assert (short.residual_gpu_ns, short.residual_micro) == (-1_700_000_000_000, -1_884_167)
    assert short.check() == (
        "The lines are -1,700,000,000,000 GPU·ns off the runs' wall clocks.",
        "The lines are 1.884167 USD below the invoice.",
    )
    twice = report_of([*HOUR_LEDGER, HOUR_LEDGER[0]])
    assert (twice.residual_gpu_ns, twice.residual_micro) == (1_200_000_000_001, 1_330_000)


def test_idle_stays_on_its_line_when_nobody_rode():
    report = report_of([entry("idle", "", HOUR)])
    idle = report.account("idle")
    assert (idle.amount_micro, idle.loaded_micro, report.tenants.amount_micro) == (3_990_000, 3_990_000, 0)


def test_idle_overhead_and_unobserved_are_shown_even_when_empty():
    assert [line.account for line in report_of([]).lines] == ["idle", "overhead", "unobserved"]
    underfill = report_of([entry("underfill", "", 5)])
    assert [line.account for line in underfill.lines] == ["underfill", "idle", "overhead", "unobserved"]


def test_the_wall_is_the_runs_time_within_the_window():
    runs = [make_run(started_ns=HOUR // 2, ended_ns=2 * HOUR, gpus=2), make_run(run_id="x", heartbeat_ns=HOUR)]
    report = report_of([], runs=runs, window=(0, HOUR))
    assert report.wall_gpu_ns == 2 * HOUR // 2 + HOUR
    assert report_of([], runs=runs, window=(5 * HOUR, 6 * HOUR)).wall_gpu_ns == 0
    with pytest.raises(ValueError, match="whole minutes"):
        report_of(window=(1, HOUR))


def test_days_reported_alone_are_the_days_of_a_longer_report():
    entries = [entry("tenant", "A", DAY, minute=0), entry("tenant", "A", HOUR, minute=1440)]
    entries.append(entry("idle", "", DAY - HOUR, minute=1440))
    runs = [make_run(ended_ns=2 * DAY)]
    both = report_of(entries, by=("tenant", "day"), runs=runs)
    days = [report_of(entries, by=("tenant", "day"), runs=runs, window=(n * DAY, (n + 1) * DAY)) for n in (0, 1)]
    assert [line.keys for line in both.lines if line.account == "tenant"] == [
        ("A", "1970-01-01"),
        ("A", "1970-01-02"),
    ]
    busy = [[x.gpu_ns for x in r.lines if x.account == "tenant"] for r in (both, *days)]
    assert busy == [[DAY, HOUR], [DAY], [HOUR]]
    assert sum(day.invoice_micro for day in days) == both.invoice_micro


@pytest.mark.parametrize("by", sorted(COLUMNS))
def test_any_grouping_has_the_same_total(by):
    report = report_of(by=(by,))
    assert report.total.amount_micro == 3_990_000
    assert sum(line.share for line in report.lines) == 1
    assert report.tenants.requests == 301


def test_only_tenants_have_tenants_and_tiers():
    recomputed = [entry("overhead", name, 1, tier=tier) for name, tier in (("A", "fast"), ("B", "batch"))]
    report = report_of([*HOUR_LEDGER, *recomputed], by=("tenant", "tier", "model"))
    assert [line.keys for line in report.lines if line.account == "overhead"] == [("", "", "llama")]


def test_groups_must_be_known():
    with pytest.raises(ValueError, match="cannot group by colour"):
        report_of(by=("colour",))
    with pytest.raises(ValueError, match="something to group by"):
        report_of(by=())


def test_money_says_what_it_rests_on():
    assert report_of().basis == (("step", Decimal("0.833333")), ("estimated", Decimal("0.166667")))
    assert "Rests on: 83.3 % single steps, 16.7 % estimates." in report_of().notes()


entries = st.lists(
    st.builds(
        entry,
        st.sampled_from(ACCOUNTS),
        st.sampled_from(["A", "B", ""]),
        st.integers(0, MINUTE_NS),
        st.integers(0, 10**9),
        st.integers(0, 10**9),
        minute=st.integers(0, 5000),
        host=st.sampled_from(["h1", "h2"]),
    ),
    max_size=12,
)
groupings = st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, unique=True)


def runs_behind(entries):
    """Runs whose walls are just what the entries measured."""
    spans = [(line.host, line.minute_ns, line.minute_ns + line.gpu_ns) for line in entries]
    return [
        make_run(run_id=str(n), host=host, started_ns=start, ended_ns=end) for n, (host, start, end) in enumerate(spans)
    ]


@tries(60)
@given(entries, groupings, st.one_of(st.none(), st.decimals(0, 100, places=4)))
def test_lines_always_add_up(entries, by, rate):
    report = report_of(entries, rate, tuple(by), runs_behind(entries) or None)
    if entries:
        assert report.check() == ()
        assert report.total.loaded_micro == report.total.amount_micro == report.invoice_micro
    assert sum(line.gpu_ns for line in report.lines) == sum(line.gpu_ns for line in entries)
    assert report.total.output_tokens == sum(line.output_tokens for line in entries)


def test_csv_holds_every_line_once_and_the_column_sums_to_the_invoice():
    rows = list(csv.DictReader(io.StringIO(to_csv(report_of()))))
    assert sum(Decimal(row["amount"]) for row in rows) == Decimal("3.990000")
    assert (rows[0]["tenant"], rows[0]["amount"], rows[0]["currency"], rows[0]["per_1k"]) == (
        "A",
        "1.330000",
        "USD",
        "0.005320",
    )
    assert rows[1]["per_1k_out"] == ""
    bare = list(csv.DictReader(io.StringIO(to_csv(report_of(rate=None)))))
    assert [(row["amount"], row["currency"], row["note"]) for row in bare[:1]] == [("", "", "no rate")]


def test_files_say_what_is_billed_and_why_an_amount_is_missing():
    prices = [TokenPrice("llama", "fast", "USD", 1000, "0.5", None, "1", 0, None, "")]
    entries = [*HOUR_LEDGER[:2], HOUR_LEDGER[0]._replace(tier="fast"), *HOUR_LEDGER[2:]]
    report = report_of(entries, idle_policy="weighted", settings={"prices": tuple(prices)}, by=("tenant", "tier"))
    rows = {(row["tenant"], row["tier"]): row for row in csv.DictReader(io.StringIO(to_csv(report)))}
    assert (rows["A", "fast"]["api_amount"], rows["A", "fast"]["api_currency"]) == ("150.000000", "USD")
    assert (rows["A", "standard"]["api_amount"], rows["A", "standard"]["note"]) == ("", "no price")
    assert rows["A", "fast"]["billed"] == rows["A", "fast"]["amount_loaded"] != rows["A", "fast"]["amount"]
    document = json.loads(to_json(report))
    assert (document["idle_policy"], document["tz"]) == ("weighted", "UTC")
    assert {(each["tier"], each["tokens"]) for each in document["unpriced"]} == {("standard", 251_000)}
    table = pq.read_table(io.BytesIO(to_parquet(report)))
    assert sum(table["billed_micro"].to_pylist()) == report.total.billed_micro
    assert table["api_micro"].to_pylist().count(None) == len(report.lines) - 1


def test_an_idle_policy_moves_the_same_money_in_every_file():
    for policy in ("separate", "weighted", "even"):
        rows = csv.DictReader(io.StringIO(to_csv(report_of(idle_policy=policy))))
        assert sum(Decimal(row["billed"]) for row in rows) == Decimal("3.99")


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", " =", "\u00a0 +", "\n\t-", "＝", " ＠"])
def test_csv_cells_are_never_formulas(start):
    name = f"{start}HYPERLINK(1)"
    (row, *_) = csv.DictReader(io.StringIO(to_csv(report_of([entry("tenant", name, 1)])), newline=""))
    assert row["tenant"] == f"'{name}"
    assert plain("a=b") == "a=b"


def test_json_tells_everything_and_null_for_unknown():
    document = json.loads(to_json(report_of()))
    assert document["lines"][0]["amount_micro"] == 1_330_000
    assert (document["from"], document["to"]) == ("1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z")
    assert (document["invoice_micro"], document["residual_gpu_ns"], document["problems"]) == (3_990_000, 0, [])
    bare = json.loads(to_json(report_of(rate=None)))
    assert (bare["rate_per_gpu_hour"], bare["reason"], bare["lines"][0]["amount_micro"]) == (None, "no rate", None)


def test_parquet_holds_exact_numbers(tmp_path):
    path = tmp_path / "report.parquet"
    path.write_bytes(to_parquet(report_of()))
    table = pq.read_table(path)
    assert sum(table["amount_micro"].to_pylist()) == 3_990_000
    assert table["per_1k"][0].as_py() == Decimal("0.005320")
    assert json.loads(table.schema.metadata[b"farebox.report"])["invoice_micro"] == 3_990_000


def printed(report, **options):
    page = io.StringIO()
    render(report, Console(file=page, **options))
    return page.getvalue()


PIPED = """\
GPU cost 1970-01-01 00:00:00 to 1970-01-01 01:00:00 UTC
Idle time is a line of its own.
USD USD/1k USD/1k
tenant requests prompt cached output GPU·s share USD with idle USD/1k with idle out
─
A 300 200,000 100,000 50,000 1,200.000 33.3 % 1.3300 2.5861 0.005320 0.010344 0.026600
B 1 1,000 0 0 600.000 16.7 % 0.6650 1.2931 0.665000 1.293056 –
─
idle 1,700.000 47.2 % 1.8842 0.0000
overhead 100.000 2.8 % 0.1108 0.1108
unobserved 0.000 0.0 % 0.0000 0.0000
─
total 301 201,000 100,000 50,000 3,600.000 100.0 % 3.9900 3.9900
3.99 USD per GPU-hour.
No declared capacity: the runs' walls stand in for it.
Rests on: 83.3 % single steps, 16.7 % estimates.
"""


def test_a_pipe_gets_the_whole_table_in_plain_text():
    text = printed(report_of(), width=40, force_terminal=False)
    assert re.sub("─+", "─", re.sub("^ +", "", re.sub(" +", " ", text), flags=re.MULTILINE)) == PIPED
    assert not any(line != line.rstrip() for line in text.splitlines())
    assert text == printed(report_of(), width=200, force_terminal=False)


def test_no_color_takes_the_red_and_keeps_the_words():
    problem = report_of(HOUR_LEDGER[:3])
    options = {"width": 200, "force_terminal": True, "color_system": "standard"}
    assert "31m" in printed(problem, **options)
    plain_text = printed(problem, **options, no_color=True)
    assert "31m" not in plain_text
    assert "Does not add up" in plain_text


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_a_terminal_never_cuts_a_number(width):
    text = printed(report_of(), width=width, force_terminal=True, color_system=None)
    table = text.splitlines()[: -len(report_of().notes())]
    assert "…" not in text
    assert all(len(line) <= width for line in table)
    assert re.search(r"idle .*1\.8842", text)
    assert re.search(r"total .*3\.9900", text)


def test_tenant_names_are_printed_literally_and_harmlessly():
    names = ["[bold]x[/]", "model[int4]", "a\x1b[31mred", "two\nlines", ""]
    text = printed(report_of([entry("tenant", name, 1) for name in names]), force_terminal=False)
    for shown in ("[bold]x[/]", "model[int4]", "a�[31mred", "two�lines", "(none)"):
        assert shown in text


def test_printed_amounts_add_up_to_the_printed_total():
    thirds = [entry("tenant", name, 100 * HOUR) for name in "ABC"]
    report = report_of(thirds, Decimal("33.333333"), runs=[make_run(ended_ns=300 * HOUR)])
    body = printed(report, force_terminal=False).splitlines()
    shown = [Decimal(line.split()[8].replace(",", "")) for line in body[5:8]]
    assert shown == [Decimal("3333.34"), Decimal("3333.33"), Decimal("3333.33")]
    assert "10,000.00" in body[-4]


def test_problems_and_missing_rates_are_on_the_page():
    text = printed(report_of(HOUR_LEDGER[:3], rate=None), force_terminal=False)
    assert "Does not add up: The lines are -1,700,000,000,000 GPU·ns off" in text
    assert "no rate" in text
    assert "0.00 " not in text.split("GPU-ms")[0]


@pytest.mark.parametrize("name", sorted(MODULES))
def test_money_and_time_never_pass_through_binary_fractions(name):
    source = (Path(farebox.costing.__file__).parent / f"{name}.py").read_text(encoding="utf-8")
    assert "float" not in source
    literals = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    assert not [value for value in literals if type(value) is float]
