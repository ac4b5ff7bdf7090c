"""`farebox report`, `report close` and `explain` over periods, policies and settings."""

import csv
import io
import json
import subprocess
import sys
from decimal import Decimal

import pyarrow.parquet as pq
import pytest

MINUTE = "2026-01-01T00:00Z/2026-01-01T00:01Z"
WEEK = ("--from", "2025-12-28", "--to", "2026-01-04")


@pytest.fixture
def bill(inside):
    """A report as a program reads it."""

    def call(*arguments):
        return json.loads(inside("report", "store", *arguments, "--format", "json").stdout)

    return call


@pytest.fixture
def rated(store, inside):
    inside("rates", "add", "store", "--gpu-type", "h100", "--price", "4.29")
    return store


def amounts(found, *names):
    """Money by the values of some columns."""
    sums: dict[tuple[str, ...], int] = {}
    for line in found["lines"]:
        key = tuple(line[name] for name in names)
        sums[key] = sums.get(key, 0) + line["amount_micro"]
    return sums


def test_days_of_a_zone_add_up_to_the_whole(rated, bill):
    zone = ("--tz", "America/New_York")
    whole = bill("--from", "2025-12-01", "--to", "2026-02-01", *zone)
    assert whole["from"] == "2025-12-01T05:00:00Z" and whole["invoice_micro"] > 0
    days = [bill("--period", day, *zone) for day in ("2025-12-31", "2026-01-01")]
    assert [day["invoice_micro"] for day in days] == [whole["invoice_micro"], 0]
    month = bill("--period", "2025-12", *zone, "--by", "day,tenant")
    assert {line["day"] for line in month["lines"] if line["amount_micro"]} == {"2025-12-31"}
    assert bill(*WEEK)["invoice_micro"] == bill()["invoice_micro"] == whole["invoice_micro"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--period", "2026-10", "--from", "2026-10-01"), "not both"),
        (("--period", "october"), "is not a period"),
        (("--period", "2026-01", "--tz", "Mars/Olympus"), "not a known time zone"),
        (("--from", "2026-01-01T00:00:30Z", "--to", "2026-01-02"), "whole minutes"),
        (("--from", "2026-01-02", "--to", "2026-01-01"), "ends after it starts"),
        (("--from", "2026-01-01", "--to", "9999-01-01"), "years go from 1970"),
        (("--by", "tenant,colour"), "choose from tenant, team"),
        (("--format", "parquet"), "-o FILE"),
    ],
)
def test_a_question_that_has_no_answer_is_refused(store, inside, arguments, message):
    assert message in inside("report", "store", *arguments, check=2).stderr


def test_who_pays_for_idle_and_how_steps_are_shared_changes_no_total(inside, rated, bill):
    plain = bill(*WEEK)
    for idle in ("weighted", "even", "reservation"):
        assert bill(*WEEK, "--idle", idle)["invoice_micro"] == plain["invoice_micro"]
    tokens = json.loads(inside("report", "store", *WEEK, "--policy", "tokens", "--format", "json").stdout)
    assert tokens["policy"] == "tokens"
    per_tenant, again = amounts(plain, "account", "tenant"), amounts(tokens, "account", "tenant")
    assert sum(per_tenant.values()) == sum(again.values()) and per_tenant != again
    assert per_tenant["idle", ""] == again["idle", ""]


def test_teams_budgets_and_token_prices_are_shown(rated, bill, inside, tmp_path):
    inside("tenants", "set", "store", "chat", "--team", "support")
    inside("budgets", "set", "store", "support", "--period", "2026-01", "--hard", "0.001")
    (tmp_path / "p.csv").write_text("model,tier,unit,input,output\nllama-3-8b,standard,per_1m,1,1\n", "utf-8")
    inside("prices", "import", "store", "p.csv")
    assert {line["team"] for line in bill("--by", "team")["lines"]} >= {"support", "unattributed"}
    printed = inside("report", "store", "--period", "2026-01", "--by", "team").stdout
    assert "support" in printed and "unattributed" in printed and "≥" in printed
    assert "budget" in printed.lower()


def test_rates_of_two_currencies_are_not_added(rated, inside, bill):
    inside("hosts", "add", "store", "other", "--gpus", "1", "--type", "l4")
    inside("rates", "add", "store", "--gpu-type", "l4", "--price", "1", "--currency", "EUR")
    refused = inside("report", "store", "--period", "2026-01", check=2).stderr
    assert "EUR" in refused and "USD" in refused
    assert bill("--period", "2026-01", "--rate", "2", "--currency", "EUR")["currency"] == "EUR"


def test_declared_hosts_are_what_is_paid(rated, inside, bill):
    inside("hosts", "add", "store", "spare", "--gpus", "2", "--type", "h100", "--from", "2026-01-01")
    found = bill("--period", "2026-01-01", "--by", "host")
    assert amounts(found, "account", "host")["unobserved", "spare"] == 2 * 24 * 4_290_000


def test_every_format_tells_the_same_sum(rated, bill, inside, tmp_path):
    total = Decimal(bill()["invoice_micro"]).scaleb(-6)
    rows = list(csv.DictReader(io.StringIO(inside("report", "store", "--format", "focus").stdout)))
    assert sum(Decimal(row["BilledCost"]) for row in rows) == total
    inside("report", "store", "--format", "focus", "-o", "focus.parquet")
    assert pq.read_table(tmp_path / "focus.parquet").num_rows == len(rows)
    inside("report", "store", "--format", "html", "-o", "bill.html")
    page = (tmp_path / "bill.html").read_text("utf-8")
    assert page.lower().startswith("<!doctype html>") and "summariser" in page
    assert "http" not in page.replace("http://www.w3", "")
    assert "cannot write" in inside("report", "store", "-o", "no/such/file", check=2).stderr


def test_a_closed_bill_stays_to_the_byte(rated, inside):
    close = ("report", "close", "store", "--period", MINUTE, "--by", "tenant,tier")
    assert "is closed since" in inside(*close).stdout
    forms = ("table", "csv", "json")
    before = {form: inside("report", "store", "--period", MINUTE, "--format", form).stdout for form in forms}
    assert "tier" in before["csv"] and "4.29" in before["table"]
    inside("rates", "add", "store", "--gpu-type", "h100", "--price", "99", "--replace", "--from", "1970-01-01")
    for form in forms:
        assert inside("report", "store", "--period", MINUTE, "--format", form).stdout == before[form]
    other = inside("report", "store", "--period", MINUTE, "--by", "model").stdout
    assert "is closed: the bill that stands is the one it was closed with" in other
    assert "was closed at 20" in inside(*close, check=2).stderr
    shared = ("report", "close", "store", "--period", "2026-01-01", "--early")
    assert "was closed at 20" in inside(*shared, check=2).stderr


def test_a_closed_bill_is_the_same_in_every_format_whatever_changes(rated, inside, tmp_path):
    closed = ("report", "store", "--period", MINUTE)
    inside("report", "close", "store", "--period", MINUTE, "--by", "tenant,tier", "--idle", "weighted")
    plain = inside(*closed).stdout
    forms = ("html", "focus", "parquet")
    for form in forms:
        inside(*closed, "--format", form, "-o", f"before.{form}")
    inside("rates", "add", "store", "--gpu-type", "h100", "--price", "99", "--replace", "--from", "beginning")
    for form in forms:
        inside(*closed, "--format", form, "-o", f"after.{form}")
        assert (tmp_path / f"after.{form}").read_bytes() == (tmp_path / f"before.{form}").read_bytes()
    assert inside(*closed, "--by", "tenant,tier", "--idle", "weighted", "--policy", "roofline").stdout == plain
    total = json.loads(inside(*closed, "--format", "json").stdout)["invoice_micro"]
    assert json.loads(inside(*closed, "--by", "model", "--format", "json").stdout)["invoice_micro"] == total
    assert json.loads(inside(*closed, "--idle", "even", "--format", "json").stdout)["invoice_micro"] > 20 * total


def test_a_period_that_was_closed_by_mistake_is_reopened_and_closed_anew(rated, inside):
    asked = ("store", "--period", MINUTE)
    inside("report", "close", *asked)
    first = inside("report", *asked).stdout
    assert "Missing option '--reason'" in inside("report", "reopen", *asked, check=2).stderr
    assert "version 1 is reopened: too early" in inside("report", "reopen", *asked, "--reason", "too early").stdout
    assert "is not closed" in inside("report", "reopen", *asked, "--reason", "x", check=2).stderr
    inside("rates", "add", "store", "--gpu-type", "h100", "--price", "5", "--replace", "--from", "beginning")
    assert "version 2 is closed since" in inside("report", "close", *asked).stdout
    second = inside("report", *asked).stdout
    assert "4.29 USD" in first and "5 USD" in second and "reopened at" in second and "too early" in second
    assert inside("report", *asked, "--version", "1").stdout == first
    assert "name a closed period" in inside("report", *asked, "--version", "3", check=2).stderr
    listed = inside("report", "closings", "store").stdout
    assert "stands" in listed and "too early" in listed
    assert [row["version"] for row in json.loads(inside("report", "closings", "store", "--json").stdout)] == [1, 2]


def test_a_bill_is_corrected_under_the_policy_that_the_closed_one_had(rated, inside, bill):
    inside("report", "close", "store", "--period", MINUTE, "--policy", "tokens")
    next_minute = ("--from", "2026-01-01T00:01Z", "--to", "2026-01-02")
    assert not [line for line in bill(*next_minute)["lines"] if line["account"].startswith("correction")]
    late = ("--trace", "synthetic:9", "--limit", "5", "--gpu", "h100", "--model", "llama-3-8b", "--engine-id", "late")
    inside("run", *late, "--store", "store")
    found = [line for line in bill(*next_minute)["lines"] if line["account"].startswith("correction")]
    assert sum(line["requests"] for line in found) == 5


def test_what_is_not_over_is_closed_only_when_told(rated, inside):
    close = ("report", "close", "store", "--period", "2026-01")
    assert "close it when it is over, or with --early" in inside(*close, check=2).stderr
    assert "is closed since" in inside(*close, "--early").stdout


def test_what_comes_late_is_a_correction_in_the_open_period(rated, inside, bill):
    whole = bill("--from", "2026-01-01", "--to", "2026-01-02")["invoice_micro"]
    inside("report", "close", "store", "--period", MINUTE)
    frozen = inside("report", "store", "--period", MINUTE).stdout
    late = ("--trace", "synthetic:9", "--limit", "20", "--gpu", "h100", "--model", "llama-3-8b", "--engine-id", "late")
    inside("run", *late, "--store", "store")
    assert inside("report", "store", "--period", MINUTE).stdout == frozen
    rest = bill("--from", "2026-01-01T00:01Z", "--to", "2026-01-02")
    corrections = [line for line in rest["lines"] if line["account"].startswith("correction of")]
    assert sum(line["amount_micro"] for line in corrections) == rest["invoice_micro"] > 0
    assert rest["invoice_micro"] == bill("--from", "2026-01-01", "--to", "2026-01-02")["invoice_micro"] - whole


def test_explain_accounts_for_the_whole_difference(rated, inside):
    inside("rates", "add", "store", "--gpu-type", "h100", "--price", "8.58", "--replace", "--from", "1970-01-01")
    later = "2026-01-01T00:01Z/2026-01-01T00:02Z"
    told = json.loads(inside("explain", "store", later, MINUTE, "--json").stdout)
    assert told
    printed = inside("explain", "store", later, MINUTE, "--by", "tenant").stdout
    assert "summariser" in printed and "total" in printed and "\x1b" not in printed
    assert "is not a period" in inside("explain", "store", "x", MINUTE, check=2).stderr


def test_the_report_is_the_default_of_its_group(inside, store):
    usage = inside("report", "--help").stdout
    assert "farebox report [OPTIONS] STORE" in usage and "farebox report close STORE" in usage
    assert "Usage: farebox report close" in inside("report", "close", "--help").stdout
    assert "Missing argument 'STORE'" in inside("report", check=2).stderr


@pytest.mark.parametrize("group", ["rates", "hosts", "prices", "tenants", "teams", "budgets", "report"])
def test_every_command_of_a_group_has_examples(inside, group):
    from farebox.cli.app import app

    def check(command, path):
        assert "Examples" in inside(*path, "--help").stdout
        for name, inner in getattr(command, "commands", {}).items():
            check(inner, (*path, name))

    check(app.commands[group], (group,))


def test_a_bill_is_made_without_pandas(recorded):
    """pyarrow would import it, where it is installed, for a third of the whole start."""
    code = """if True:
        import sys
        from farebox.cli import main

        try:
            main()
        except SystemExit as end:
            sys.exit(end.code or ("pandas" in sys.modules and "pandas") or ("pyarrow" not in sys.modules and "no bill"))
        """
    subprocess.run([sys.executable, "-c", code, "report", str(recorded)], check=True, capture_output=True)
