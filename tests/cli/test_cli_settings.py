"""Rates, hosts, prices, tenants, keys and budgets, as an administrator sets them."""

import hashlib
import json
import socket
from fractions import Fraction
from pathlib import Path

import pytest

from farebox.costing.periods import Period
from farebox.events import (
    API_KEYS,
    BUDGET_STATES,
    BUDGETS,
    CAPACITIES,
    PRICES,
    REQUESTS,
    TEAM_RENAMES,
    TENANTS,
    Capacity,
    Rate,
    Tenant,
)
from farebox.roofline import gpu
from farebox.storage.store import open_store

JUNE = Period.parse("2026-06").from_ns
JULY_BERLIN = Period.parse("2026-07", "Europe/Berlin").from_ns
KEY = "sk-test-0123456789abcdefWXYZ"


def kept(store: Path, table):
    with open_store(store) as opened:
        return opened.settings(table)


def rates_of(store: Path) -> list[Rate]:
    with open_store(store) as opened:
        return opened.rates()


def test_a_new_rate_ends_the_open_one_and_says_so(inside, store):
    inside("rates", "add", "store", "--gpu-type", "H100", "--price", "4.29", "--note", "contract 7")
    again = (
        "rates",
        "add",
        "store",
        "--gpu-type",
        "h100",
        "--price",
        "$3.9",
        "--currency",
        "usd",
        "--from",
        "2026-06-01",
    )
    assert "h100_sxm that held before ends at 2026-06-01 00:00Z" in inside(*again).stderr
    assert inside(*again).stderr == ""
    assert rates_of(store) == [
        Rate("gpu_type", "h100_sxm", "USD", "4.29", None, 0, JUNE, "contract 7"),
        Rate("gpu_type", "h100_sxm", "USD", "3.9", None, JUNE, None, ""),
    ]
    listed = inside("rates", "list", "store").stdout
    assert "the beginning" in listed and "contract 7" in listed and "open" in listed
    assert [row["to_ns"] for row in json.loads(inside("rates", "list", "store", "--json").stdout)] == [JUNE, None]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--price", "4", "--from", "2026-06-01T00:00:30Z"), "whole minutes"),
        (("--price", "4", "--from", "2026-06-01T00:00:00"), "needs a zone"),
        (("--price", "4", "--from", "2026-06-01", "--tz", "Mars/Olympus"), "'Mars/Olympus' is not a known time zone"),
        (("--price", "4", "--from", "2026-02-01"), "from 2026-01-01T00:00:00Z to 2026-07-01T00:00:00Z"),
        (("--price", "4"), "already: say since when this one holds with --from"),
        (("--price", "4", "--from", "2026-01-01"), "--replace"),
        (("--price", "4", "--from", "2026-08-02", "--to", "2026-08-01"), "must end after it starts"),
        (("--price", "-4"), "must be zero or more"),
        (("--price", "1e999999999"), "nothing costs that much"),
        (("--price", "4", "--from", "9999-01-01"), "9999"),
        (("--price", "4", "--currency", "dollars"), "ISO 4217"),
        (("--price", "4", "--host", "a", "--engine", "b"), "name one of them"),
        (("--price", "4", "--capex", "30000"), "not both"),
        (("--capex", "30000", "--years", "4"), "missing: --kw, --per-kwh"),
        ((), "needs --price"),
    ],
)
def test_a_rate_that_cannot_be_is_refused_and_nothing_changes(inside, store, arguments, message):
    with open_store(store) as opened:
        opened.put_rate(
            Rate("any", "", "USD", "5", None, *Period.parse("2026")[2:3], JULY_BERLIN + 2 * 3600 * 10**9, "")
        )
    before = rates_of(store)
    assert message in inside("rates", "add", "store", *arguments, check=2).stderr
    assert rates_of(store) == before


def test_owning_a_gpu_gives_an_exact_rate_and_keeps_its_terms(inside, store):
    terms = (
        "--capex",
        "35000",
        "--years",
        "4",
        "--kw",
        "1.3",
        "--pue",
        "1.3",
        "--per-kwh",
        "0.10",
        "--opex-rate",
        "0.10",
    )
    assert "≈1.567402 USD" in inside("rates", "add", "store", "--host", "node-7", *terms).stdout
    (rate,) = rates_of(store)
    hourly = Fraction(35000, 4 * 8760) + Fraction("1.3") * Fraction("1.3") * Fraction("0.1") + Fraction(3500, 8760)
    assert (rate.scope, rate.name, Fraction(rate.per_gpu_hour)) == ("host", "node-7", hourly)
    assert json.loads(rate.terms or "")["capex"] == "35000"
    assert "years 4" in inside("rates", "list", "store").stdout


def test_rates_are_imported_whole_or_not_at_all(inside, store, tmp_path):
    good = "gpu_type,price,currency,from,to\nh100,4.29,eur,2026-06-01,\n,3,,,2026-06-01\n"
    (tmp_path / "rates.csv").write_text(good + 'l4,1,USD,"2026-06-01T00:00:01Z",\nh100,many,,2027-01-01,\n', "utf-8")
    refused = inside("rates", "import", "store", "rates.csv", check=2).stderr
    assert "rates.csv:4:" in refused and "whole minutes" in refused and "rates.csv:5: 'many' is not a price" in refused
    assert rates_of(store) == []
    (tmp_path / "rates.csv").write_text("\ufeff" + good, "utf-8")
    assert "2 imported" in inside("rates", "import", "store", "rates.csv").stdout
    assert rates_of(store) == [
        Rate("any", "", "USD", "3", None, 0, JUNE, ""),
        Rate("gpu_type", "h100_sxm", "EUR", "4.29", None, JUNE, None, ""),
    ]
    assert "2 were there already" in inside("rates", "import", "store", "rates.csv").stdout


def test_a_wrong_rate_is_taken_back_and_the_one_before_holds_on(inside, store):
    inside("rates", "add", "store", "--price", "4.29")
    assert "a rate for any GPU already" in inside("rates", "add", "store", "--price", "4", check=2).stderr
    inside("rates", "add", "store", "--price", "42.9", "--from", "2026-06-01")
    remove = ("rates", "remove", "store", "--from", "2026-06-01", "--reason")
    assert "say why" in inside(*remove, " ", check=2).stderr
    done = inside(*remove, "a typo:\n42.9")
    assert "4.29 USD holds since the beginning" in done.stderr and "is taken back" in done.stdout
    assert rates_of(store) == [Rate("any", "", "USD", "4.29", None, 0, None, "")]
    assert "they begin at the beginning" in inside(*remove, "again", check=2).stderr
    told = inside("rates", "changes", "store").stdout
    assert "42.9 USD, 2026-06-01 00:00Z – open" in told and "a typo: 42.9" in told
    assert len(json.loads(inside("rates", "changes", "store", "--json").stdout)) == 2


def test_a_rate_ends_and_one_since_the_beginning_is_replaced(inside, store):
    inside("rates", "add", "store", "--host", "a", "--price", "4")
    inside("rates", "add", "store", "--host", "a", "--price", "5", "--replace", "--from", "beginning")
    assert "ends at 2026-06-01" in inside("rates", "end", "store", "--host", "a", "--at", "2026-06-01").stdout
    assert rates_of(store) == [Rate("host", "a", "USD", "5", None, 0, JUNE, "")]
    assert (
        "no rate for gpu_type"
        in inside("rates", "end", "store", "--gpu-type", "l4", "--at", "2026-06-01", check=2).stderr
    )


def test_example_rates_tell_their_source_and_are_used_by_nothing(inside, store):
    examples = json.loads(inside("rates", "examples", "--json").stdout)
    assert {"h100_sxm", "h200_sxm", "b200_sxm", "a100_sxm", "l40s", "l4"} <= {e["gpu_type"] for e in examples}
    assert all(e["source"] and e["date"] and Fraction(e["price"]) > 0 for e in examples)
    assert all(gpu(e["gpu_type"]).name == e["gpu_type"] for e in examples if e["gpu_type"] != "mi300x")
    assert "Examples, used by nothing" in inside("rates", "examples").stdout
    assert json.loads(inside("report", "store", "--format", "json").stdout)["invoice_micro"] is None


def test_hosts_are_declared_and_ended(inside, store):
    added = inside(
        "hosts", "add", "store", "node 7", "--gpus", "8", "--type", "h100", "--from", "2026-06-01", "--note", "lease"
    )
    assert "note: no run is on node 7 (h100_sxm)" in added.stderr and socket.gethostname() in added.stderr
    inside("hosts", "end", "store", "node 7", "--at", "2026-07-01", "--tz", "Europe/Berlin")
    assert kept(store, CAPACITIES) == [Capacity("node 7", "h100_sxm", 8, JUNE, JULY_BERLIN, "lease")]
    assert "8×h100_sxm" in inside("hosts", "list", "store").stdout
    assert "no declaration" in inside("hosts", "end", "store", "node 8", "--at", "2026-07-01", check=2).stderr
    assert "2026-06-30 22:00Z" in inside("hosts", "list", "store").stdout
    here = ("hosts", "add", "store", socket.gethostname(), "--gpus", "1", "--type", "h100")
    assert "note" not in inside(*here).stderr


def test_prices_need_a_unit_and_are_imported_whole_or_not_at_all(inside, store, tmp_path):
    head = "model,tier,unit,input,cached_input,output,valid_from\n"
    (tmp_path / "p.csv").write_text(
        head + "a,,per_1m,1,0.5,2,\nb,,,1,,2,\nc,slow,per_1k,1,,2,\nd,,per_1k,x,,2,\n", "utf-8"
    )
    refused = inside("prices", "import", "store", "p.csv", check=2).stderr
    assert "p.csv:3: no unit: write per_token, per_1k, per_1m" in refused
    assert "p.csv:4: tier 'slow'" in refused and "p.csv:5: input 'x' is not a price" in refused
    assert "p.csv:2" not in refused and kept(store, PRICES) == []
    (tmp_path / "p.csv").write_text(
        head + "Llama-3-8B,,per_1m,1.25,0.3125,10,\nx,fast,per_token,0,,0,2026-06-01\n", "utf-8"
    )
    told = inside("prices", "import", "store", "p.csv").stdout
    assert "4 imported from 2 rows (one for each tier where none is named)" in told
    found = {(p.model, p.tier): p for p in kept(store, PRICES)}
    assert set(found) == {("llama-3-8b", t) for t in ("fast", "standard", "batch")} | {("x", "fast")}
    assert found["llama-3-8b", "batch"][2:8] == ("USD", 1_000_000, "1.25", "0.3125", "10", 0)
    assert found["x", "fast"][2:8] == ("USD", 1, "0", None, "0", JUNE)
    assert "0.3125" in inside("prices", "list", "store").stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,input\nx,1\n", "p.csv:1: no column output"),
        ("model,unit,input,output,colour\n", "p.csv:1: unusable columns colour"),
        ("model,unit,input,output\nx,per_1k,1,2,3\n", "p.csv:2: 5 values for 4 columns"),
        ('model,unit,input,output\n"x,per_1k,1,2\n', "this is not CSV"),
    ],
)
def test_a_file_that_is_no_price_list_is_refused_by_its_line(inside, store, tmp_path, text, message):
    (tmp_path / "p.csv").write_text(text, "utf-8")
    assert message in inside("prices", "import", "store", "p.csv", check=2).stderr


def test_a_tenant_moves_and_keeps_its_history(inside, store):
    inside("tenants", "set", "store", "chat", "--name", "Chät", "--team", "support", "--reserve", "0.25")
    moved = inside("tenants", "set", "store", "chat", "--team", "success", "--from", "2026-06-01")
    assert "ends at 2026-06-01" in moved.stderr and "team success" in moved.stdout
    inside("tenants", "end", "store", "chat", "--at", "2026-07-01", "--tz", "Europe/Berlin")
    assert kept(store, TENANTS) == [
        Tenant("chat", "Chät", "support", None, 250, 0, JUNE),
        Tenant("chat", "Chät", "success", None, 250, JUNE, JULY_BERLIN),
    ]
    assert "success" in inside("tenants", "list", "store").stdout
    assert "thousandth" in inside("tenants", "set", "store", "x", "--reserve", "0.0001", check=2).stderr


def test_a_team_gets_another_name_and_its_budgets_and_history_follow(inside, store):
    inside("rates", "add", "store", "--price", "4.29")
    inside("tenants", "set", "store", "chat", "--team", "search")
    for month in ("2026-01", "2026-12"):
        inside("budgets", "set", "store", "search", "--period", month, "--hard", "0.000001")
    told = inside("teams", "rename", "store", "search", "discovery", "--from", "2026-06-01")
    assert "search is called discovery since 2026-06-01 00:00Z, with its budgets for 2026-01, 2026-12" in told.stdout
    assert (
        {b.team for b in kept(store, BUDGETS)} == {state.team for state in kept(store, BUDGET_STATES)} == {"discovery"}
    )
    printed = inside("report", "store", "--period", "2026-01", "--by", "team").stdout
    assert "discovery (formerly search)" in printed
    assert "Budget of discovery for 2026-01: above hard" in printed
    assert "search" in inside("teams", "list", "store").stdout
    again = inside("budgets", "set", "store", "search", "--period", "2026-02", "--hard", "1")
    assert "search is called discovery" in again.stderr
    later = inside("tenants", "set", "store", "chat", "--cost-centre", "47", "--from", "2026-07-01")
    assert "team discovery, cost centre 47" in later.stdout
    another = inside("tenants", "set", "store", "code", "--team", "search", "--from", "2026-07-01")
    assert "this search is another one" in another.stderr


def test_a_move_is_no_rename(inside, store):
    inside("tenants", "set", "store", "chat", "--team", "search")
    inside("tenants", "set", "store", "chat", "--team", "discovery", "--from", "2026-01-02")
    lines = json.loads(inside("report", "store", "--by", "team", "--format", "json").stdout)["lines"]
    assert {line["team"] for line in lines} == {"search", "unattributed", ""}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("support", "help"), "no tenant belongs to a team called support before then"),
        (("search", "dev"), "dev is a team of its own already"),
        (("search", "plans"), "plans is a team of its own already"),
        (("old", "older"), "no tenant belongs to a team called old: it is called search"),
        (("old", "older", "--from", "2020-01-01"), "old is called search later on already"),
        (("search", " "), "a team has a name"),
        (("search", "unattributed"), "stands for tenants without a team"),
    ],
)
def test_a_new_name_that_would_hide_a_team_is_refused(inside, store, arguments, message):
    inside("tenants", "set", "store", "chat", "--team", "old")
    inside("tenants", "set", "store", "code", "--team", "dev")
    inside("budgets", "set", "store", "plans", "--period", "2026-12", "--hard", "1")
    inside("teams", "rename", "store", "old", "search")
    assert message in inside("teams", "rename", "store", *arguments, check=2).stderr
    assert len(kept(store, TEAM_RENAMES)) == 1


@pytest.mark.parametrize("name", ["a\nb", "\x1b[31mred", "\u202eder", "x" * 129, " "])
def test_what_cannot_be_shown_is_no_tenants_name(inside, store, tmp_path, name):
    inside("tenants", "set", str(store), name, check=2)
    inside("tenants", "key", "add", str(store), name, given="a-key-of-sixteen-characters\n", check=2)
    if name.strip():
        assert "is no name" in inside("tenants", "set", str(store), "chat", "--team", name, check=2).stderr
        (tmp_path / "t.csv").write_text(f'tenant,team\nok,a\nchat,"{name}"\n')
        assert "is no name" in inside("tenants", "import", str(store), "t.csv", check=2).stderr
    with open_store(store) as opened:
        assert not opened.settings(TENANTS) and not opened.settings(API_KEYS)


def test_tenants_are_imported(inside, store, tmp_path):
    (tmp_path / "t.csv").write_text("tenant,team,reserve\nchat,support,1.5\ncode,dev,\n", "utf-8")
    inside("tenants", "import", "store", "t.csv")
    assert [(t.tenant_id, t.team, t.reserved_milligpus) for t in kept(store, TENANTS)] == [
        ("chat", "support", 1500),
        ("code", "dev", None),
    ]


def test_a_key_is_kept_only_as_its_hash(farebox, inside, store):
    added = farebox("tenants", "key", "add", "store", "chat", given=KEY + "\n")
    hashed = hashlib.sha256(KEY.encode()).hexdigest()
    (row,) = kept(store, API_KEYS)
    assert (row.key_hash, row.tenant_id, row.hint, row.to_ns) == (hashed, "chat", "WXYZ", None)
    shown = added.stdout + added.stderr + inside("tenants", "key", "list", "store", "--json").stdout
    files = [file.read_bytes() for file in store.rglob("*") if file.is_file()]
    assert KEY not in shown and not any(KEY.encode() in content for content in files)
    assert "known already" in inside("tenants", "key", "add", "store", "chat", given=KEY).stdout
    assert "it is chat's" in inside("tenants", "key", "add", "store", "code", given=KEY, check=2).stderr
    assert "0 keys" in inside("tenants", "key", "revoke", "store", "zz", check=2).stderr
    inside("tenants", "key", "revoke", "store", hashed[:8])
    assert kept(store, API_KEYS)[0].to_ns > row.from_ns
    assert "revoked at" in inside("tenants", "key", "add", "store", "chat", given=KEY, check=2).stderr


def test_valid_keys_are_exported_for_others(inside, store):
    hashed = hashlib.sha256(KEY.encode()).hexdigest()
    inside("tenants", "key", "add", "store", "chat", given=KEY)
    inside("tenants", "key", "add", "store", "code", given=KEY[::-1])
    gone = hashlib.sha256(KEY[::-1].encode()).hexdigest()
    inside("tenants", "key", "revoke", "store", gone[:8])
    assert json.loads(inside("tenants", "key", "export", "store").stdout) == {hashed: "chat"}
    file = store.parent / "keys.json"
    assert "1 keys" in inside("tenants", "key", "export", "store", "-o", str(file)).stderr
    assert json.loads(file.read_text()) == {hashed: "chat"} and file.stat().st_mode & 0o777 == 0o600
    nowhere = str(store.parent / "no" / "keys.json")
    assert "cannot be written" in inside("tenants", "key", "export", "store", "-o", nowhere, check=2).stderr


@pytest.mark.parametrize("text", ["", "short", "two words are no key at all"])
def test_a_key_that_can_be_guessed_or_is_none_is_refused(inside, store, text):
    assert "at least 16" in inside("tenants", "key", "add", "store", "chat", given=text, check=2).stderr
    assert kept(store, API_KEYS) == []


def test_erasing_a_tenant_keeps_the_sums(inside, store):
    bill = ("report", "store", "--rate", "4.29", "--by", "tenant,tier")
    bills = [bill, (*bill, "--policy", "tokens")]
    before = [inside(*bill).stdout for bill in bills]
    assert "for good?" in inside("tenants", "erase", "store", "chat", check=1).stderr
    with open_store(store) as opened:
        mine = opened.read(REQUESTS)["tenant_id"].to_pylist().count("chat")
    assert mine > 0
    assert f"{mine} requests of chat erased" in inside("tenants", "erase", "store", "chat", "--yes").stdout
    with open_store(store) as opened:
        assert "chat" not in opened.read(REQUESTS)["tenant_id"].to_pylist()
    assert [inside(*bill).stdout for bill in bills] == before


def test_a_budget_is_set_for_a_period_of_a_zone(inside, store):
    inside("budgets", "set", "store", "support", "--period", "2026-10", "--soft", "8000.5", "--hard", "10000")
    inside("budgets", "set", "store", "support", "--period", "2026-10", "--hard", "9000", "--currency", "EUR")
    (budget,) = kept(store, BUDGETS)
    assert budget[:6] == ("support", "2026-10", "UTC", "EUR", None, 9_000_000_000)
    assert "9,000.00" in inside("budgets", "list", "store").stdout
    for arguments, message in (
        (("--period", "2026-13", "--hard", "1"), "not in the calendar"),
        (("--period", "2026-10", "--soft", "2", "--hard", "1"), "above the hard one"),
        (("--period", "2026-10"), "needs a limit"),
        (("--period", "2026-10", "--hard", "0.0000001"), "to a millionth"),
    ):
        assert message in inside("budgets", "set", "store", "x", *arguments, check=2).stderr


def test_a_budget_shows_on_the_live_screen_at_once(inside, store):
    inside("rates", "add", "store", "--price", "4.29")
    inside("tenants", "set", "store", "chat", "--team", "support")
    inside("budgets", "set", "store", "support", "--period", "2026-01", "--hard", "0.0001")
    (state,) = kept(store, BUDGET_STATES)
    assert (state.state, state.hard_micro) == ("above hard", 100) and state.spent_micro > 100
    told = inside("top", "store", "--once").stdout
    assert "support has spent" in told and "farebox explain STORE 2025-12 2026-01" in " ".join(told.split())
    assert json.loads(inside("top", "store", "--json").stdout)["budgets"] == [state._asdict()]
    inside("budgets", "set", "store", "support", "--period", "2026-01", "--hard", "1000000")
    assert "support has spent" not in inside("top", "store", "--once").stdout


def test_settings_need_a_store(inside, tmp_path):
    for group in ("rates", "hosts", "prices", "tenants", "budgets"):
        assert "no store at nowhere" in inside(group, "list", "nowhere", check=1).stderr
    assert "no store" in inside("tenants", "erase", "nowhere", "chat", "--yes", check=1).stderr
    assert not (tmp_path / "nowhere").exists()
