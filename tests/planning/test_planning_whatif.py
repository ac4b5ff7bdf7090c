"""A change by `whatif` is what running the changed engine gives."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from planning_helpers import RATE, START_NS, config, record_into, recorded_in, traffic

from farebox.collector.books import load_books
from farebox.costing.report import build_report
from farebox.events import LEDGER, Rate
from farebox.planning.description import changes_of, promises_of
from farebox.planning.live import as_it_was, under
from farebox.planning.scenario import parse_scenario
from farebox.planning.tally import one_ledger
from farebox.storage.store import open_store

KEY = [(name, "ascending") for name in LEDGER.key]


def bill_of(path):
    with open_store(path) as store:
        return build_report(load_books(store))


def ledger_of(path):
    with open_store(path) as store:
        return one_ledger([store.read(LEDGER)])


def nameless(ledger):
    """Lines of one engine, whatever it is called."""
    return ledger.drop_columns(["engine_id", "host"]).sort_by(
        [key for key in KEY if key[0] not in ("engine_id", "host")]
    )


def test_one_at_a_time_to_continuous_is_running_that_mode(tmp_path):
    before = record_into(tmp_path / "none", config(mode="none"), traffic(60))
    direct = record_into(tmp_path / "continuous", config(), traffic(60))
    outcome = under(recorded_in(before), parse_scenario(["mode=continuous"]))
    assert nameless(outcome.ledger).equals(nameless(ledger_of(direct)))
    bill = bill_of(direct)
    assert (outcome.total_micro, outcome.bill.invoice_micro) == (bill.total.amount_micro, bill.invoice_micro)
    assert outcome.bill.check() == ()


def test_two_endpoints_are_two_runs_with_the_traffic_split_by_hand(tmp_path):
    path = record_into(tmp_path / "both", config(), traffic(200))
    scenario = parse_scenario(
        routes=["prompt_tokens<500:endpoint=small"],
        endpoints=["small:gpu=l40s,model=llama-3-8b,weights=fp8,price=0.99"],
    )
    outcome = under(recorded_in(path), scenario)
    short, rest = ([a for a in traffic(200) if (a.prompt_tokens < 500) is is_short] for is_short in (True, False))
    large = record_into(tmp_path / "large", config(), rest)
    by_engine = {each.run.engine_id: each for each in outcome.lived}
    assert nameless(by_engine["small-0"].ledger).equals(nameless(ledger_of(_small(tmp_path, short))))
    assert nameless(next(e for n, e in by_engine.items() if n != "small-0").ledger).equals(nameless(ledger_of(large)))
    assert outcome.total_micro == bill_of(large).total.amount_micro + bill_of(tmp_path / "small").total.amount_micro


def _small(folder, asked):
    from farebox.collector.embedded import EmbeddedEngine
    from farebox.roofline import Replica, gpu, model

    engine = EmbeddedEngine(Replica(gpu("l40s"), model("llama-3-8b"), "fp8")).config(["test"])
    return record_into(folder / "small", engine, asked, RATE._replace(per_gpu_hour="0.99"))


def test_a_fleet_file_stands_in_for_the_recorded_engines(tmp_path, small, farebox):
    file = tmp_path / "fleet.toml"
    file.write_text('[[endpoint]]\nname = "a"\ngpu = "h100"\nmodel = "llama-3-8b"\nmax_num_seqs = 4\nprice = "4.29"\n')
    told = json.loads(farebox("whatif", str(small), "--fleet", str(file), "--format", "json").stdout)
    assert told["after"]["total_micro"] == told["before"]["total_micro"]
    assert told["after"]["residual_gpu_ns"] == told["after"]["residual_micro"] == 0


def test_routes_change_tiers_limits_and_prompts(small):
    recorded = recorded_in(small)
    rules = ["tenant=chat:tier=batch,max_tokens=64", "*:shorten_prompts=0.25"]
    outcome = under(recorded, parse_scenario(routes=rules))
    rows = {row["request_id"]: row for row in outcome.requests.to_pylist()}
    for arrival in recorded.arrivals:
        row = rows[arrival.request_id]
        assert row["prompt_tokens"] == arrival.prompt_tokens - int(arrival.prompt_tokens * Decimal("0.25"))
        if arrival.tenant_id == "chat":
            assert row["tier"] == "batch"
            assert row["output_tokens"] <= 64


def test_a_scenario_file_says_what_the_flags_say(tmp_path, small):
    file = tmp_path / "s.toml"
    file.write_text(
        'name = "autumn"\n[set]\nmax_num_seqs = 8\n[[route]]\nprompt_tokens = "<500"\nendpoint = "small"\n'
        '[[endpoint]]\nname = "small"\ngpu = "l40s"\nmodel = "llama-3-8b"\nprice = "0.99"\n[[slo]]\nttft = "1s"\n'
    )
    flags = parse_scenario(
        ["max_num_seqs=8"], ["prompt_tokens<500:endpoint=small"],
        ["small:gpu=l40s,model=llama-3-8b,price=0.99"], ["ttft=1s"],
    )  # fmt: skip
    read = parse_scenario(file=file)
    assert read.name == "autumn"
    assert (read.change, read.rules, read.endpoints, read.slos) == (
        flags.change,
        flags.rules,
        flags.endpoints,
        flags.slos,
    )


def test_another_gpu_has_no_price_until_somebody_gives_one(small, farebox):
    told = json.loads(farebox("whatif", str(small), "--set", "gpu=h200", "--format", "json").stdout)
    assert told["after"]["total_micro"] is None
    assert told["saved_micro"] is None
    assert any("have no price" in note for note in told["notes"])
    priced = json.loads(farebox("whatif", str(small), "--set", "gpu=h200,price=2", "--format", "json").stdout)
    wall = priced["after"]["wall_gpu_ns"]
    assert priced["after"]["total_micro"] == round(wall * 2_000_000 / 3_600_000_000_000)


def test_rates_of_the_types_that_were_recorded_stay_theirs(small):
    recorded = recorded_in(small)
    outcome = under(recorded, parse_scenario(["gpu=h200,price=2"]))
    assert {(rate.scope, rate.name.startswith("embedded")) for rate in outcome.rates} == {
        ("any", False),
        ("engine", True),
    }
    assert as_it_was(recorded).rates == (RATE,)


NONSENSE = {
    "tp=0": "at least one GPU",
    "gpu=h9000": 'unknown GPU "h9000"',
    "model=llama-3-70b": "does not fit",
    "max_num_seq=3": "did you mean max_num_seqs",
    "max_num_seqs=0": "at least 1",
    "replicas=0": "at least 1",
    "mode=fast": "not one of",
    "other:tp=2": 'no recorded endpoint "other"',
    "price=cheap": "not a price",
    "price=1e400": "not a price",
    "max_num_seqs=99999999999999999999": "is more than",
    "gpu": "KEY=VALUE",
}


@pytest.mark.parametrize(("setting", "message"), NONSENSE.items())
def test_nonsense_settings_are_clear_errors(small, farebox, setting, message):
    assert message in farebox("whatif", str(small), "--set", setting, check=2).stderr


ROUTES = {
    "tenant=nobody:tier=standard": 'no tenant "nobody"',
    "tenant=chat:endpoint=small": 'no endpoint "small"',
    "prompt_tokens<2:tier=batch": "takes no request",
    "tenant=chat:tier=gold": "not one of",
    "chat": "CONDITION:ACTION",
    "tenant=:tier=batch": "no condition",
    "*:shorten_prompts=1": "share above 0 and below 1",
    "*:shorten_prompts=nan": "share above 0 and below 1",
}


@pytest.mark.parametrize(("route", "message"), ROUTES.items())
def test_nonsense_routes_are_clear_errors(small, farebox, route, message):
    assert message in farebox("whatif", str(small), "--route", route, check=2).stderr


def test_nothing_to_change_and_nothing_to_replay_are_errors(tmp_path, small, farebox):
    assert "nothing is changed" in farebox("whatif", str(small), check=2).stderr
    gone = farebox(
        "whatif", str(small), "--from", "2026-01-01T00:30Z", "--to", "2026-01-01T00:40Z", "--set", "tp=2", check=2
    )
    assert "no finished requests" in gone.stderr


def test_the_first_line_is_the_baselines_error_and_both_sides_add_up(small, farebox):
    text = farebox("whatif", str(small), "--set", "max_num_seqs=64", "--slo", "chat:ttft=1s").stdout
    assert text.splitlines()[0].startswith("baseline: the replay as it was equals the recording")
    assert "uncalibrated, ±35 %" in text.splitlines()[0]
    assert text.count("adds up") == 2
    page = farebox("whatif", str(small), "--set", "max_num_seqs=64", "--format", "html").stdout
    assert page.startswith("<!doctype html>")
    assert "<li>all engines: max_num_seqs=64</li>" in page
    assert "http" not in page
    assert "<script" not in page


def test_an_engine_that_stays_up_costs_the_same_with_less_to_do(tmp_path):
    path = record_into(tmp_path / "store", config(), traffic(40))
    recorded = recorded_in(path)
    (run,) = recorded.runs
    end_ns = START_NS + 600 * 10**9
    up = run._replace(run=run.run._replace(ended_ns=end_ns, heartbeat_ns=end_ns), stays_up=True)
    outcome = under(replace(recorded, runs=(up,)), parse_scenario(["max_num_seqs=1"]))
    assert outcome.lived[0].run.wall_end_ns >= end_ns
    assert outcome.bill.check() == ()
    assert outcome.rates == (Rate("any", "", "USD", "4.29", None, 0, None, "test"),)


def test_a_scenario_is_told_in_words():
    routes = ["tenant=voice:tier=standard,max_tokens=200", "prompt_tokens<500:endpoint=small", "*:shorten_prompts=0.2"]
    small = "small:gpu=l40s,model=llama-3-8b,price=0.99,replicas=2"
    told = parse_scenario(["chat:fast_cap=off", "tp=2,price=3"], routes, [small], ["voice:ttft=300ms"])
    assert changes_of(told) == [
        "all engines: tp=2, price=3",
        "chat: fast_cap=off",
        "requests of tenant=voice: tier standard, at most 200 output tokens",
        "requests of prompt_tokens 1-499: to small",
        "requests of everybody: a share of 0.2 left out of prompts",
        "new endpoint small: 2 × llama-3-8b on 1×l40s, 0.99 USD per GPU-hour",
    ]
    assert promises_of(told) == ["promised to voice: TTFT within 300 ms"]
