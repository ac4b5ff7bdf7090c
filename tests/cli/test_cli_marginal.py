"""`farebox report --marginal`: what would go away without each tenant, from stored steps, beside the bill."""

import csv
import io
import json
import shutil

import pyarrow.parquet as pq
import pytest

from farebox.collector.recorder import Recorder
from farebox.events import RATES, Rate, Run, Share, Step
from farebox.roofline.step_model import UNITS_PER_NS, StepModel
from farebox.storage.store import create_store, open_store

US = 1000 * UNITS_PER_NS
T = 12_700_000
DAY = 86_400_000_000_000
START = 1_767_225_600_000_000_000
WORKED = {"a": 220_000, "b": 620_000, "c": 1_220_000, "d": 4_400_000}
"""Marginal ns of the worked case B: 6 460 of 12 700 µs."""
MODEL = StepModel(300 * US, 6000 * US, 20 * US, 0, 0, 0, 0, 0, 0, 0).to_json()
JANUARY = ("--period", "2026-01")


def share(tenant: str, seq: int, at_ns: int, phase: str, rows: int, attn: int) -> Share:
    return Share("e", "r", seq, at_ns, "tenant", tenant, "standard", phase, 1, rows, 0, 0, attn * US, 0, None)


def record(path, step_model: str | None, engine: str, at: list[int], gpus: int = 2) -> None:
    """Record a run that takes the step of case B at some instants (ns after the start), measured."""
    run = Run(
        engine, "r", "h", "H100", (), gpus, "m", "bf16", "continuous", 64, None, None, None, step_model, "real",
        START, 0, START, None,
    )  # fmt: skip
    with create_store(path) as store:
        recorder = Recorder(store, bulk=False)
        recorder.run(run)
        ended = 0
        for seq, when in enumerate(at):
            cells = [
                share(name, seq, START + when, "decode", 1, a) for name, a in zip("abc", (200, 600, 1200), strict=True)
            ]
            cells.append(share("d", seq, START + when, "prefill", 512, 100))
            counts = (when - ended, gpus, None, None, 4, 0, 1, 3, 512, 3, 3, 0, 0, 0, None, None, 0, None, None, None)
            step = Step(engine, "r", seq, START + when, T, *counts, "step")
            recorder.step(step, [cell._replace(engine_id=engine) for cell in cells])
            ended = when + T
        recorder.run(run._replace(heartbeat_ns=START + ended, ended_ns=START + ended))
        recorder.flush()


@pytest.fixture(scope="module")
def of_case_b(tmp_path_factory):
    """Case B on two GPUs: on the first day, across its midnight, and on the third day."""
    path = tmp_path_factory.mktemp("worked") / "store"
    record(path, MODEL, "e", [DAY // 2, DAY - 5_000_000, 2 * DAY])
    with open_store(path) as store, store.changing() as settings:
        settings.put(RATES, Rate("any", "", "USD", "3.60", None, 0, None, ""))
    return path


@pytest.fixture
def worked(tmp_path, of_case_b):
    return shutil.copytree(of_case_b, tmp_path / "store")


@pytest.fixture
def marginal(inside):
    """The lines of a report with marginal time, as a program reads them."""

    def call(*arguments):
        told = inside("report", "store", *arguments, "--marginal", "--format", "json").stdout
        return [line for line in json.loads(told)["lines"] if line["account"] == "tenant"]

    return call


def times(lines):
    sums: dict[str, list[int]] = {}
    for line in lines:
        kept = sums.setdefault(line["tenant"], [0, 0])
        kept[:] = kept[0] + line["marginal_gpu_ns"], kept[1] + line["marginal_micro"]
    return {tenant: tuple(pair) for tenant, pair in sums.items()}


def test_the_worked_case_through_a_store(worked, marginal):
    lines = marginal()
    expected = {tenant: 3 * 2 * ns for tenant, ns in WORKED.items()}
    assert {line["tenant"]: line["marginal_gpu_ns"] for line in lines} == expected
    assert sum(line["gpu_ns"] for line in lines) == 3 * 2 * T
    for line in lines:
        assert abs(line["marginal_micro"] - line["marginal_gpu_ns"] / 1_000_000) < 3  # 3.60 an hour: 1 µ$ per GPU-ms
        assert line["marginal_gpu_ns"] <= line["gpu_ns"] and line["marginal_micro"] <= line["amount_micro"]


def test_days_add_up_to_the_month(worked, marginal, inside):
    inside("rates", "add", "store", "--price", "7.20", "--from", "2026-01-02")
    month = times(marginal(*JANUARY))
    days = [line for day in ("2026-01-01", "2026-01-02", "2026-01-03") for line in marginal("--period", day)]
    assert times(days) == times(marginal(*JANUARY, "--by", "day,tenant,team,model,hour")) == month
    assert {tenant: ns for tenant, (ns, _) in month.items()} == {tenant: 6 * ns for tenant, ns in WORKED.items()}


def test_every_format_tells_the_same_and_says_that_it_is_no_bill(worked, marginal, inside, tmp_path):
    lines = {line["tenant"]: line["marginal_gpu_ns"] for line in marginal()}
    plain, told = (inside("report", "store", *more).stdout for more in ((), ("--marginal",)))
    assert "not a bill" in told and "does not add up" in told and "50.9 %" in told and told.count("<0.001") == 4
    assert "arginal" not in plain
    rows = list(csv.DictReader(io.StringIO(inside("report", "store", "--marginal", "--format", "csv").stdout)))
    assert {row["tenant"]: int(row["marginal_gpu_ns"]) for row in rows if row["account"] == "tenant"} == lines
    assert all(not row["marginal_gpu_ns"] and not row["marginal_amount"] for row in rows if row["account"] == "idle")
    inside("report", "store", "--marginal", "--format", "parquet", "-o", "bill.parquet")
    table = pq.read_table(tmp_path / "bill.parquet").to_pylist()
    assert {row["tenant"]: row["marginal_gpu_ns"] for row in table if row["account"] == "tenant"} == lines


def test_it_is_the_same_beside_another_policy_and_without_a_rate_there_is_no_money(worked, marginal, inside):
    assert times(marginal("--policy", "tokens", "--idle", "weighted")) == times(marginal())
    inside("rates", "remove", "store", "--from", "beginning", "--reason", "none")
    assert {line["marginal_micro"] for line in marginal()} == {None}
    assert {line["tenant"]: line["marginal_gpu_ns"] // 6 for line in marginal()} == WORKED


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", "team"), "--by needs tenant"),
        (("--by", "tenant,tier"), "not by tier"),
        (("--by", "tenant,phase"), "not by phase"),
        (("--format", "focus"), "signal beside the bill"),
        (("--format", "html"), "signal beside the bill"),
    ],
)
def test_what_it_cannot_be_told_for_is_refused(worked, inside, arguments, message):
    assert message in inside("report", "store", "--marginal", *arguments, check=2).stderr


def test_time_of_a_run_without_a_step_model_is_unknown_and_says_why(worked, marginal, tmp_path, inside):
    record(tmp_path / "store", None, "f", [5 * DAY])
    lines = marginal("--by", "tenant,engine")
    assert {line["marginal_gpu_ns"] is None for line in lines if line["engine"] == "f"} == {True}
    assert {line["tenant"]: line["marginal_gpu_ns"] // 6 for line in lines if line["engine"] == "e"} == WORKED
    whole = marginal()
    assert {(line["marginal_gpu_ns"], line["marginal_micro"]) for line in whole} == {(None, None)}
    assert all("no steps with a step model for" in line["marginal_reason"] for line in whole)
    assert "No marginal time on 4 lines" in inside("report", "store", "--marginal").stdout


def test_a_closed_bill_keeps_its_bytes_and_its_own_rates(worked, marginal, inside):
    inside("tenants", "set", "store", "a", "--team", "x")
    inside("report", "close", "store", *JANUARY, "--early")
    frozen, before = inside("report", "store", *JANUARY, "--format", "csv").stdout, times(marginal(*JANUARY))
    inside("rates", "add", "store", "--price", "99", "--from", "beginning", "--replace")
    assert times(marginal(*JANUARY)) == times(marginal(*JANUARY, "--by", "tenant,team")) == before
    assert "no part of the closed bill" in inside("report", "store", *JANUARY, "--marginal").stdout
    assert inside("report", "store", *JANUARY, "--format", "csv").stdout == frozen
    told = inside("explain", "store", "2026-01-02", "2026-01-03").stdout
    assert "2026-01-03 lies within 2026-01, which is closed: the bill that stands is the closed one" in told
