"""FOCUS output: rows that add up to each origin charge, and a check that every broken row fails."""

import csv
import io
import json
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction

import pyarrow.parquet as pq
import pytest
from costing_bills import DAY, HOUR, OCTOBER, START, an_hour, books, line, rate
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing.closing import close
from farebox.costing.focus import focus_rows, to_focus_csv, to_focus_parquet
from farebox.costing.focus_check import check
from farebox.costing.focus_columns import COLUMNS
from farebox.costing.periods import Period
from farebox.costing.rating import invoice
from farebox.costing.report import build_report
from farebox.errors import InputError
from farebox.events import Capacity

COSTS = ("BilledCost", "EffectiveCost", "ContractedCost", "ListCost")


def read(text):
    return list(csv.DictReader(io.StringIO(text, newline="")))


def by_origin(rows):
    groups = defaultdict(list)
    for row in rows:
        groups[row["x_OriginChargeId"]].append(row)
    return groups


def ratio(row):
    document = json.loads(row["AllocatedMethodDetails"], parse_float=Decimal)
    return sum(element["AllocatedRatio"] for element in document["Elements"])


@pytest.mark.parametrize("idle_policy", ["separate", "weighted", "even"])
def test_rows_are_valid_and_sum_to_the_bill(idle_policy):
    lines = [*an_hour(), *an_hour(START + DAY, host="=cmd", gpu_type="A100")]
    report = build_report(books(lines), OCTOBER, idle_policy=idle_policy)
    rows = read(to_focus_csv(report))
    assert check(rows) == []
    assert list(rows[0]) == [column.name for column in COLUMNS]
    for cost in COSTS:
        assert sum(Decimal(row[cost]) for row in rows) == Decimal("7.98")
    by_payer = defaultdict(Decimal)
    for row in rows:
        by_payer[row["AllocatedResourceId"]] += Decimal(row["BilledCost"])
    billed = {line.keys[0]: Decimal(line.billed_micro) / 10**6 for line in report.lines if line.account == "tenant"}
    assert {name: by_payer[f"tenant/{name}"] for name in billed} == billed


def test_idle_that_moved_is_charged_from_the_idle_line_to_each_tenant():
    report = build_report(books(an_hour()), OCTOBER, idle_policy="weighted")
    moved = [row for row in focus_rows(report) if row["AllocatedMethodId"] == "idle-time"]
    assert [(row["x_Account"], row["AllocatedResourceId"], row["BilledCost"]) for row in moved] == [
        ("idle", "tenant/a", "1.256111"),
        ("idle", "tenant/b", "0.628056"),
    ]
    assert sum(Decimal(row["ConsumedQuantity"]) for row in moved) == 1700
    assert {row["x_Requests"] for row in moved} == {"0.0"}


def test_declared_time_without_a_run_is_a_charge_of_its_own():
    declared = Capacity("spare", "H100", 2, START, START + HOUR, "")
    rows = list(focus_rows(build_report(books(an_hour(), capacities=(declared,)), OCTOBER)))
    spare = [row for row in rows if row["ResourceName"] == "spare"]
    assert [(row["x_Account"], row["BilledCost"], row["ConsumedQuantity"]) for row in spare] == [
        ("unobserved", "7.980000", "7200.000000000")
    ]
    assert check(rows) == []


gpu_times = st.integers(1, 10**13)


@tries(40)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc"), gpu_times), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 2), gpu_times), max_size=3),
    st.sampled_from(["separate", "weighted", "even"]),
    st.sampled_from(["3.99", "0", "7/3", "0.000001"]),
)
def test_every_origin_charge_is_the_sum_of_its_rows(busy, idle, idle_policy, price):
    lines = [line(START + day * DAY, tenant_id=name, gpu_ns=ns) for day, name, ns in busy]
    lines += [line(START + day * DAY, "idle", gpu_ns=ns) for day, ns in idle]
    change = START + DAY + HOUR
    rates = (rate(price, to_ns=change), rate("5.01", from_ns=change))
    rows = list(focus_rows(build_report(books(lines, rates), OCTOBER, idle_policy=idle_policy)))
    assert check(rows) == []
    for group in by_origin(rows).values():
        assert sum(ratio(row) for row in group) == 1
        assert len({(row["ResourceId"], row["ChargePeriodStart"], row["ContractedUnitPrice"]) for row in group}) == 1
        seconds = sum(Decimal(row["ConsumedQuantity"]) for row in group)
        origin = invoice(int(seconds * 10**9), Fraction(group[0]["SkuPriceId"].partition("@")[2]))
        assert sum(Decimal(row["BilledCost"]) for row in group) == Decimal(origin) / 10**6


def test_a_price_cut_within_the_day_makes_two_origins():
    noon = START + 12 * HOUR
    lines = [*an_hour(), *an_hour(noon)]
    rates = (rate("3.99", to_ns=noon), rate("2.00", from_ns=noon))
    rows = list(focus_rows(build_report(books(lines, rates), OCTOBER, idle_policy="weighted")))
    sums = {key: sum(Decimal(row["BilledCost"]) for row in group) for key, group in by_origin(rows).items()}
    assert sorted(sums.values()) == [2, Decimal("3.99")]
    periods = {(row["ChargePeriodStart"], row["ChargePeriodEnd"]) for row in rows}
    assert ("2026-10-01T00:00:00Z", "2026-10-01T12:00:00Z") in periods
    assert ("2026-10-01T12:00:00Z", "2026-10-02T00:00:00Z") in periods


def test_late_time_of_a_closed_period_is_a_correction():
    first = an_hour()
    closing = close(books(first), OCTOBER, early=True, now_ns=OCTOBER.to_ns)
    late = [*first, line(START, gpu_ns=HOUR, requests=1), *an_hour(OCTOBER.to_ns)]
    report = build_report(books(late, closings=(closing,)), Period.parse("2026-11"))
    rows = list(focus_rows(report))
    corrections = [row for row in rows if row["ChargeClass"] == "Correction"]
    assert sum(Decimal(row["BilledCost"]) for row in corrections) == Decimal("3.99")
    assert {row["BillingPeriodStart"] for row in corrections} == {"2026-11-01T00:00:00Z"}
    assert {row["ChargePeriodStart"] for row in corrections} == {"2026-10-01T00:00:00Z"}
    assert sum(Decimal(row["BilledCost"]) for row in rows) == Decimal("7.98")
    assert check(rows) == []


def test_formulas_are_neutralised_and_numbers_stay_numbers():
    report = build_report(books([line(host="=cmd|' /C calc'!A0", tenant_id="@sum", gpu_ns=HOUR)]), OCTOBER)
    row = read(to_focus_csv(report))[0]
    assert row["ResourceName"].startswith("'=")
    assert row["x_TenantId"] == "'@sum"
    assert row["BilledCost"] == "3.990000"


def test_parquet_holds_the_same_rows_with_types(tmp_path):
    report = build_report(books(an_hour()), OCTOBER)
    (tmp_path / "focus.parquet").write_bytes(to_focus_parquet(report))
    table = pq.read_table(tmp_path / "focus.parquet")
    assert sum(table.column("BilledCost").to_pylist()) == Decimal("3.99")
    assert str(table.schema.field("ChargePeriodStart").type) == "timestamp[ms, tz=UTC]"
    assert table.num_rows == len(read(to_focus_csv(report)))
    assert table.column("CommitmentDiscountStatus").null_count == table.num_rows


def test_without_a_rate_there_is_no_focus():
    with pytest.raises(InputError, match="no rate holds for H100 on h, 2026-10-01"):
        to_focus_csv(build_report(books(an_hour(), rates=()), OCTOBER))


BROKEN = {
    "BilledCost is null": {"BilledCost": ""},
    "BilledCost is no Decimal": {"BilledCost": "3"},
    "EffectiveCost is no Decimal": {"EffectiveCost": "1e3"},
    "ChargePeriodStart is no Date/Time": {"ChargePeriodStart": "2026-10-01 00:00:00"},
    "BillingPeriodEnd is no Date/Time": {"BillingPeriodEnd": "2026-13-01T00:00:00Z"},
    "ChargePeriodEnd is not after ChargePeriodStart": {"ChargePeriodEnd": "2026-10-01T00:00:00Z"},
    "BillingPeriodEnd is not after BillingPeriodStart": {"BillingPeriodEnd": "2026-09-01T00:00:00Z"},
    "ChargeCategory is none of": {"ChargeCategory": "usage"},
    "ChargeClass is none of": {"ChargeClass": "correction"},
    "ChargeFrequency is none of": {"ChargeFrequency": "Daily"},
    "ServiceCategory is none of": {"ServiceCategory": "AI"},
    "PricingCategory is none of": {"PricingCategory": "Spot"},
    "CommitmentDiscountStatus is none of": {"CommitmentDiscountStatus": "Unknown"},
    "BillingCurrency is no ISO 4217": {"BillingCurrency": "$"},
    "ContractedUnitPrice is negative": {"ContractedUnitPrice": "-1.0"},
    "PricingQuantity and PricingUnit are null only together": {"PricingUnit": ""},
    "ConsumedQuantity and ConsumedUnit are null only together": {"ConsumedQuantity": ""},
    "SkuId is null on usage": {"SkuId": ""},
    "AllocatedTags is no JSON": {"AllocatedTags": "{team: blue}"},
    "AllocatedMethodDetails is no JSON": {"AllocatedMethodDetails": "[]"},
    'AllocatedMethodDetails has no "Elements"': {"AllocatedMethodDetails": '{"Elements": [{"Ratio": 1.0}]}'},
    "AllocatedMethodId and AllocatedResourceId are null only together": {"AllocatedResourceId": ""},
    "ResourceName is no String": {"ResourceName": " h"},
    "Colour is no FOCUS column": {"Colour": "blue"},
}


@pytest.fixture(scope="module")
def rows():
    return list(focus_rows(build_report(books(an_hour()), OCTOBER)))


@pytest.mark.parametrize("problem", BROKEN)
def test_the_check_finds(rows, problem):
    found = check([{**rows[0], **BROKEN[problem]}, *rows[1:]])
    assert any(text.startswith(f"row 1: {problem}") for text in found), found


def test_the_check_finds_missing_columns_and_ratios_that_are_not_one(rows):
    without = {name: value for name, value in rows[0].items() if name != "CommitmentDiscountStatus"}
    assert check([without, *rows[1:]]) == ["row 1: CommitmentDiscountStatus is missing"]
    (problem,) = check(rows[1:])
    assert "its AllocatedRatios sum to 0.52" in problem
