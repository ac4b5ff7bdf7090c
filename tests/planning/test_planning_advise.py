"""Advice is what its own command says, breaks no promise, and is silent where nothing is worth doing."""

import json
import shlex
from html import escape

import pytest
from planning_helpers import FLEET, config, record_into, traffic

from farebox.collector.fleet import record_fleet
from farebox.costing.run_summary import Quantiles
from farebox.engine.fleet import Fleet
from farebox.events import ADVICE, Rate
from farebox.planning.advise import _Judge
from farebox.planning.baseline import Baseline
from farebox.planning.guard import broken
from farebox.planning.levers import Candidate
from farebox.planning.levers.evidence import busy_hours, quantile
from farebox.planning.outcome import Waits
from farebox.planning.slo import Slo
from farebox.storage.store import create_store, open_store


def advice_on(farebox, path, *arguments):
    return json.loads(farebox("advise", str(path), *arguments, "--json").stdout)


def check_commands(farebox, told):
    """Every command gives the promised figures."""
    for row in told["advice"]:
        _, command, *arguments = shlex.split(row["command"])
        again = json.loads(farebox(command, *arguments, "--format", "json").stdout)
        assert again["saved_micro_per_month"] == row["saved_micro"]
        assert again["freed_gpu_ns_per_month"] == row["freed_gpu_ns"]


def test_few_seats_are_found_and_every_command_keeps_its_promise(small, farebox):
    told = advice_on(farebox, small)
    assert {"seats", "quantisation"} <= {row["lever"] for row in told["advice"]}
    assert [row["rank"] for row in told["advice"]] == list(range(1, len(told["advice"]) + 1))
    assert all(row["evidence"] and row["effect"] and row["confidence"] for row in told["advice"])
    check_commands(farebox, told)
    with open_store(small) as store:
        assert [row._asdict() for row in store.settings(ADVICE)] == told["advice"]
    page = farebox("advise", str(small), "--format", "html").stdout
    assert all(
        f"{row['rank']}. {escape(row['title'])}" in page and escape(row["command"]) in page for row in told["advice"]
    )


def test_fewer_replicas_are_found_in_a_fleet(tmp_path, farebox):
    (tmp_path / "fleet.toml").write_text(FLEET)
    with create_store(tmp_path / "store") as store:
        for name, price in (("h100_sxm", "4.29"), ("l40s", "0.99")):
            store.put_rate(Rate("gpu_type", name, "USD", price, None, 0, None, "test"))
        record_fleet(Fleet.from_toml(tmp_path / "fleet.toml"), traffic(400), store, inputs=["test"])
    told = advice_on(farebox, tmp_path / "store")
    assert told["advice"][0]["lever"] == "replicas"
    check_commands(farebox, told)


def test_a_promise_is_never_broken(small, farebox):
    bound = advice_on(farebox, small, "--slo", "ttft=1us")
    for row in bound["advice"]:
        _, command, *arguments = shlex.split(row["command"])
        again = json.loads(farebox(command, *arguments, "--format", "json").stdout)
        for tenant in (each for each in again["rows"] if each["kind"] == "tenant"):
            before, after = (tenant[side]["waits"]["ttft"]["p99_ns"] for side in ("before", "after"))
            assert after <= before  # broken before, and not worse


def test_nothing_worth_doing_is_said(tmp_path, farebox):
    asked = [arrival for arrival in traffic(60) if arrival.tenant_id == "chat"][:3]
    path = record_into(tmp_path / "store", config(weights="int4"), asked)
    assert "nothing worth doing" in farebox("advise", str(path)).stdout
    with open_store(path) as store:
        assert store.settings(ADVICE) == []


SECOND = 10**9


def waits(ttft_p99, unserved=0):
    return Waits(100, unserved, Quantiles(1, ttft_p99), Quantiles(1, 2), None)


@pytest.mark.parametrize(
    ("before", "after", "slos", "is_broken"),
    [
        (2 * SECOND, 3 * SECOND, [], False),
        (2 * SECOND, 5 * SECOND, [], True),
        (SECOND // 10, SECOND // 2, [], False),
        (SECOND // 10, SECOND // 2, [Slo("a", ttft_ns=SECOND // 4)], True),
        (SECOND // 2, SECOND // 3, [Slo("a", ttft_ns=SECOND // 4)], False),
        (2 * SECOND, 15 * SECOND, [Slo("b", ttft_ns=SECOND)], False),
    ],
    ids=["less than double", "more than double", "unnoticed", "breaks it", "was broken, gets better", "patient"],
)
def test_the_guard(before, after, slos, is_broken):
    assert (broken({"a": waits(before)}, {"a": waits(after)}, slos) is not None) == is_broken


def test_more_requests_without_an_answer_are_refused():
    assert "without an answer" in (broken({"a": waits(1)}, {"a": waits(1, unserved=3)}, []) or "")


def test_hours_and_quantiles():
    counts = [0] * 9 + [5, 8, 9, 3] + [0] * 11
    assert busy_hours(counts, 0.0) == (9, 13)
    assert busy_hours([*counts[12:], *counts[:12]], 0.0) == (21, 1)
    assert busy_hours([1] * 24, 0.0) is None
    assert [quantile([1, 2, 3, 4], part) for part in (0.25, 0.5, 0.99)] == [1, 2, 4]


def test_confidence_is_no_higher_than_the_replay_as_it_was_is_near():
    def confidence(is_exact, cost, rests_on="scheduling"):
        judge = _Judge(*[None] * 2, Baseline(is_exact, {"cost": cost}, None), (), (), 0)  # pyright: ignore[reportArgumentType]
        return judge._confidence(Candidate("", "", "", (), rests_on)).partition(":")[0]

    assert [confidence(True, 0.0), confidence(False, 0.04), confidence(False, -0.2)] == ["high", "high", "medium"]
    assert [confidence(False, 0.5), confidence(False, None)] == ["low", "low"]
    assert confidence(True, 0.0, "hardware") == "medium"
    assert confidence(True, 0.0, "answers").startswith("low until answers are judged")
