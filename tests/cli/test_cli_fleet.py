"""`farebox run --fleet`, as a user calls it."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

EXAMPLE = str(Path(__file__).parents[2] / "examples" / "fleet" / "fleet.toml")
RUN = ("run", "--fleet", EXAMPLE, "--trace", "synthetic", "--limit", "300")


def test_the_example_runs_and_is_billed(inside):
    start = ("--start", "2026-01-05T06:59:50+01:00")
    done = json.loads(inside(*RUN, *start, "--store", "s", "--rate", "3.60", "--json").stdout)
    chat, code, night = done["endpoints"]
    assert [e["name"] for e in (chat, code, night, done["total"])] == ["chat", "code", "night", "all"]
    assert (chat["engines"], chat["runs"], code["runs"], night["runs"]) == (3, 3, 1, 1)
    assert chat["load_gpu_ns"] == 2 * 8_029_995_008
    assert sum(sum(e["requests"].values()) for e in (chat, code, night)) == 300
    wall = sum(e["wall_gpu_ns"] for e in (chat, code, night))
    assert wall == done["total"]["wall_gpu_ns"]
    assert abs(done["bill"]["invoice_micro"] - Decimal(wall) / 10**6) <= 1  # 3.60 an hour is 1 µ$ per GPU-ms
    assert done["example_rates"] == [
        "farebox rates add s --host chat --price 4.29",
        "farebox rates add s --host code --price 4.29",
        "farebox rates add s --host night --price 0.99",
    ]
    bill = json.loads(inside("report", "s", "--by", "engine", "--format", "json").stdout)
    assert bill["invoice_micro"] == done["bill"]["invoice_micro"]


def test_example_prices_are_told_and_not_used(inside):
    done = inside(*RUN, "--limit", "60", "--store", "s")
    assert "No rate" in done.stdout and "used by nothing" in done.stdout
    assert "TTFT" in done.stdout and "chat" in done.stdout and "60 (" in done.stdout
    for line in done.stdout.splitlines():
        if line.strip().startswith("farebox rates add"):
            inside(*line.split()[1:])
    bill = json.loads(inside("report", "s", "--format", "json").stdout)
    assert bill["invoice_micro"] > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gpu", "h200"), "--gpu does not go with --fleet"),
        (("--max-num-seqs", "256"), "--max-num-seqs does not go with --fleet"),
        (("--fleet", "nowhere.toml"), "nowhere.toml: cannot be read"),
    ],
)
def test_wrong_input_is_one_clear_line_and_no_store(inside, tmp_path, arguments, message):
    assert message in inside(*RUN, *arguments, "--store", "s", check=2).stderr
    assert not (tmp_path / "s").exists()
