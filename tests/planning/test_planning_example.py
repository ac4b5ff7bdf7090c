"""The example: a bill that fast mode drove up, why, and what would bring it down; an hour of it instead of a month."""

import json
import shlex
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from farebox.events import Rate
from farebox.storage.store import create_store

MONTH = Path(__file__).resolve().parents[2] / "examples/fast-mode-bill/month.py"


@pytest.fixture(scope="module")
def bill(tmp_path_factory):
    """A store of one short day of each month."""
    spec = spec_from_file_location("fast_mode_bill", MONTH)
    assert spec is not None
    assert spec.loader is not None
    month = module_from_spec(spec)
    spec.loader.exec_module(month)
    month.QUESTIONS_FOR_S, month.REPORTS_FOR_S = 180, 60
    path = tmp_path_factory.mktemp("example") / "bill"
    with create_store(path) as store:
        for gpu_type, price in month.PRICES.items():
            store.put_rate(Rate("gpu_type", gpu_type, "USD", price, None, 0, None, "example"))
        for first, is_fast in zip(month.MONTHS, (False, True), strict=True):
            month.record_month(store, first, 1, is_fast=is_fast)
    return str(path)


def test_explain_names_fast_mode_at_the_same_number_of_requests(bill, farebox):
    told = farebox("explain", bill, "2026-09", "2026-10").stdout
    assert "with as many requests" in told
    assert "moved to fast mode, riding alone" in told


def test_advise_finds_the_hybrid_and_whatif_shows_that_it_saves_more_than_60_percent(bill, farebox):
    window = ("--from", "2026-10-01", "--to", "2026-11-01")
    advice = json.loads(farebox("advise", bill, *window, "--json").stdout)["advice"]
    hybrid = next(row for row in advice if row["lever"] == "small model")
    assert "long work in batches of up to" in hybrid["title"]
    arguments = shlex.split(hybrid["command"])[1:]
    told = json.loads(farebox(*arguments, "--format", "json").stdout)
    assert told["saved_micro"] > 0.6 * told["before"]["total_micro"]
    agents = next(row for row in told["rows"] if row["name"] == "agents")
    assert agents["after"]["waits"]["ttft"]["p99_ns"] < agents["before"]["waits"]["ttft"]["p99_ns"]
