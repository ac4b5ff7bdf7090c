"""`farebox run`, `report` and `archive`, as a user calls them."""

import csv
import io
import json
import os
import signal
import time
from decimal import Decimal
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from farebox.events import LEDGER, REQUESTS, SHARES, STEPS
from farebox.storage.store import open_store

FAST = ("--gpu", "h100", "--model", "llama-3-8b")


def archived(store: Path, table: str) -> ds.Dataset:
    return ds.dataset(store / "archive" / table, format="parquet", partitioning="hive")


def ledger_sums(store: Path) -> dict[tuple[object, ...], int]:
    with open_store(store) as opened:
        lines = opened.read(LEDGER).group_by(list(LEDGER.key)).aggregate([("gpu_ns", "sum")]).to_pylist()
    return {tuple(line[name] for name in LEDGER.key): line["gpu_ns_sum"] for line in lines}


def assert_books_balance(store: Path) -> None:
    """Every GPU-nanosecond of every run has exactly one owner, and no step is missing."""
    with open_store(store) as opened:
        runs, steps, shares = opened.runs(), opened.read(STEPS), opened.read(SHARES)
        ledger = opened.read(LEDGER)
    wall = sum((run.wall_end_ns - run.started_ns) * run.gpus for run in runs)
    assert sum(ledger["gpu_ns"].to_pylist()) == wall
    for run in runs:
        mine = steps.filter(ds.field("run_id") == run.run_id)
        assert sorted(mine["step_seq"].to_pylist()) == list(range(mine.num_rows))
    per_step = shares.group_by(["run_id", "step_seq"]).aggregate([("gpu_ns", "sum")])
    paid = {(r["run_id"], r["step_seq"]): r["gpu_ns_sum"] for r in per_step.to_pylist()}
    assert paid == {(r["run_id"], r["step_seq"]): r["duration_ns"] * r["gpus"] for r in steps.to_pylist()}


def test_a_run_is_recorded_whole_and_billed_to_the_micro_dollar(farebox, small_trace, tmp_path):
    done = farebox("run", "--trace", f"azure:{small_trace}", *FAST, "--rate", "4.29", "--store", "store", "--json")
    summary = json.loads(done.stdout)
    assert summary["requests"] == {"stop": 40}
    assert summary["prompt_tokens"] == sum(40 + 30 * i for i in range(40))
    assert summary["output_tokens"] == sum(3 + i % 7 for i in range(40))

    store = tmp_path / "store"
    assert_books_balance(store)
    requests = archived(store, "requests").to_table()
    assert requests.num_rows == 40 and set(requests["tenant_id"].to_pylist()) == {"chat"}
    assert archived(store, "steps").count_rows() == summary["steps"]
    for row in requests.to_pylist():
        assert row["arrived_ns"] <= row["scheduled_ns"] <= row["first_token_ns"] <= row["finished_ns"]

    bill = json.loads(farebox("report", "store", "--format", "json").stdout)
    assert sum(line["amount_micro"] for line in bill["lines"]) == bill["invoice_micro"]
    wall = summary["wall_ns"]
    assert abs(Decimal(bill["invoice_micro"]) - Decimal(wall) * Decimal("4.29") / 3_600_000) <= Decimal("0.5")


def test_unix_lines_and_a_final_newline_give_the_same_run(inside, azure_csv, tmp_path):
    rows = [("2023-11-16 18:17:03.9799600", 374, 44), ("2023-11-16 18:17:04.0319600", 396, 9)]
    azure_csv(tmp_path / "a_chat.csv", rows)
    azure_csv(tmp_path / "b_chat.csv", rows, newline="\n", end=True)
    for name in "ab":
        inside("run", "--trace", f"azure:{name}_chat.csv", *FAST, "--store", name)
    assert ledger_sums(tmp_path / "a") == ledger_sums(tmp_path / "b")


def test_a_bad_row_names_file_and_line_and_leaves_the_store_alone(inside, azure_csv, tmp_path):
    bad = azure_csv(tmp_path / "bad.csv", [("2023-11-16 18:17:03.97", 374, 44)])
    bad.write_bytes(bad.read_bytes() + b"\r\n2023-11-16 18:17:04.03,12x,8")
    done = inside("run", "--trace", f"azure:{bad}", *FAST, "--store", "store", check=2)
    assert "bad.csv:3" in done.stderr and "12x" in done.stderr
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--trace", "azure:nowhere.csv"), "nowhere.csv: no such file"),
        (("--trace", "csv:file"), "no such kind of trace"),
        (("--trace", "synthetic", "--gpu", "h1000"), 'unknown GPU "h1000"'),
        (("--trace", "synthetic", "--model", "llama-3-70b"), "does not fit"),
        (("--trace", "synthetic", "--load", "0"), "--load 0: must be a number above zero"),
        (("--trace", "synthetic", "--speed", "fast"), "--speed fast"),
        (("--trace", "synthetic", "--start", "2026-01-01"), "no time zone"),
        (("--trace", "synthetic", "--rate", "much"), "is not a price"),
    ],
)
def test_wrong_input_is_one_clear_line_and_no_store(inside, tmp_path, arguments, message):
    done = inside("run", *arguments, "--store", "store", check=2)
    assert message in done.stderr
    assert not (tmp_path / "store").exists()


def test_repeating_a_run_changes_nothing(inside, tmp_path):
    command = ("run", "--trace", "synthetic:3", "--limit", "60", *FAST, "--store", "store")
    first = inside(*command).stdout
    before = {path: path.read_bytes() for path in (tmp_path / "store" / "archive").rglob("*.parquet")}
    assert inside(*command).stdout == first
    assert {path: path.read_bytes() for path in (tmp_path / "store" / "archive").rglob("*.parquet")} == before


def test_another_run_in_the_same_time_of_the_same_engine_is_refused(inside):
    inside("run", "--trace", "synthetic:3", "--limit", "20", *FAST, "--store", "store")
    other = ("run", "--trace", "synthetic:4", "--limit", "20", *FAST, "--store", "store")
    assert "--engine-id" in inside(*other, check=1).stderr
    inside(*other, "--engine-id", "second")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_everything_and_can_be_completed(inside, start_farebox, tmp_path, signum):
    command = ("run", "--trace", "synthetic:5", "--limit", "200", *FAST, "--store", "store")
    process = start_farebox(*command, "--speed", "1")
    wait_for_steps(tmp_path / "store", 50)
    process.send_signal(signum)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "recorded in store" in out
    assert_books_balance(tmp_path / "store")

    inside(*command)
    inside(*command[:-1], "whole")
    assert_books_balance(tmp_path / "store")
    assert ledger_sums(tmp_path / "store") == ledger_sums(tmp_path / "whole")


def test_after_kill_9_the_store_opens_and_the_run_can_be_completed(inside, start_farebox, tmp_path):
    command = ("run", "--trace", "synthetic:6", "--limit", "200", *FAST, "--store", "store")
    process = start_farebox(*command, "--speed", "1")
    wait_for_steps(tmp_path / "store", 50)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert_books_balance(tmp_path / "store")
    inside("archive", "store")
    assert archived(tmp_path / "store", "steps").count_rows() >= 50

    inside(*command)
    inside(*command[:-1], "whole")
    assert ledger_sums(tmp_path / "store") == ledger_sums(tmp_path / "whole")


def wait_for_steps(store: Path, count: int, patience_s: float = 60) -> None:
    """Wait until another process has recorded `count` steps."""
    give_up = time.monotonic() + patience_s
    while time.monotonic() < give_up:
        if (store / "live.sqlite").exists():
            with open_store(store) as opened:
                if opened.read(STEPS, ["step_seq"]).num_rows >= count:
                    return
        time.sleep(0.1)
    raise AssertionError(f"no {count} steps in {patience_s} s")


def test_each_tenant_is_named_by_its_file_or_as_told(inside, azure_csv, tmp_path):
    rows = [("2023-11-16 18:17:03.97", 10, 2)]
    azure_csv(tmp_path / "Trace_code.csv", rows)
    azure_csv(tmp_path / "Trace_conv.csv", rows)
    inside("run", "--trace", "azure:Trace_code.csv,azure:support=Trace_conv.csv", *FAST, "--store", "store")
    with open_store(tmp_path / "store") as store:
        requests = store.read(REQUESTS)
    assert sorted(requests["tenant_id"].to_pylist()) == ["code", "support"]
    assert len(set(requests["request_id"].to_pylist())) == 2


def test_load_makes_arrivals_dense_and_keeps_the_work(inside, small_trace, tmp_path):
    for load in ("1", "4"):
        inside("run", "--trace", f"azure:{small_trace}", *FAST, "--load", load, "--store", f"load-{load}")
    spans, tokens = [], []
    for load in ("1", "4"):
        requests = archived(tmp_path / f"load-{load}", "requests").to_table()
        arrived = requests["arrived_ns"].to_pylist()
        spans.append(max(arrived) - min(arrived))
        tokens.append(sum(requests["output_tokens"].to_pylist()))
    assert abs(spans[0] - 4 * spans[1]) <= 4 and tokens[0] == tokens[1]


def test_a_report_has_the_same_sum_in_every_format(inside, tmp_path):
    inside("run", "--trace", "synthetic:8", "--limit", "80", *FAST, "--rate", "4.29", "--store", "store")
    bill = json.loads(inside("report", "store", "--format", "json").stdout)
    total = Decimal(bill["invoice_micro"]).scaleb(-6)
    rows = list(csv.DictReader(io.StringIO(inside("report", "store", "--format", "csv").stdout)))
    assert sum(Decimal(row["amount"]) for row in rows) == total
    inside("report", "store", "--format", "parquet", "-o", "bill.parquet")
    table = ds.dataset(tmp_path / "bill.parquet").to_table()
    assert table.num_rows == len(rows)
    printed = inside("report", "store").stdout
    assert "idle" in printed and "\x1b" not in printed


def test_without_a_rate_a_report_says_so_and_shows_gpu_time(inside):
    inside("run", "--trace", "synthetic:8", "--limit", "30", *FAST, "--store", "store")
    done = inside("report", "store")
    assert "No rate" in done.stdout and "GPU-ms" in done.stdout and "0.00 USD" not in done.stdout
    assert "4.29 USD per GPU-hour" in inside("report", "store", "--rate", "4.29").stdout


def test_a_report_groups_by_what_it_is_asked(inside):
    inside("run", "--trace", "synthetic:8", "--limit", "30", *FAST, "--store", "store")
    rows = csv.DictReader(io.StringIO(inside("report", "store", "--by", "tenant,tier", "--format", "csv").stdout))
    assert {"tenant", "tier"} <= set(rows.fieldnames or [])
    assert "choose from" in inside("report", "store", "--by", "colour", check=2).stderr


def test_a_missing_store_is_one_clear_line(inside, tmp_path):
    for command in ("report", "archive", "top"):
        assert "nowhere" in inside(command, "nowhere", check=1).stderr
    assert not (tmp_path / "nowhere").exists()
