"""Explanations: why a bill changed, in effects that sum to the difference."""

import json
from dataclasses import replace
from io import StringIO

import pytest
from costing_bills import DAY, HOUR, START, an_hour, books, line, rate
from hypothesis import given
from hypothesis import strategies as st
from properties import tries
from rich.console import Console

from farebox.collector.embedded import EmbeddedEngine
from farebox.collector.recorder import Recorder
from farebox.costing.books import Books
from farebox.costing.closing import close
from farebox.costing.explain import explain, headline, render, to_json
from farebox.costing.periods import Period
from farebox.engine.arrival import Arrival
from farebox.engine.engine import Engine
from farebox.engine.replay import replay
from farebox.errors import InputError
from farebox.events import LEDGER, MINUTE_NS, Capacity, TeamRename, Tenant
from farebox.roofline import Replica, gpu, model
from farebox.storage.store import create_store

MONDAY, TUESDAY = Period.parse("2026-10-01"), Period.parse("2026-10-02")


def cause(before, after, rates=None, **options):
    """What `explain` says of two lists of lines, the second a day later."""
    lines = [*before, *(x._replace(minute_ns=x.minute_ns + DAY) for x in after)]
    return explain(books(lines, rates or (rate("3.60"),)), MONDAY, TUESDAY, **{"now_ns": TUESDAY.to_ns} | options)


def ride(hours, requests=100, prompt=10_000, output=5_000, tenant_id="a", tier="standard", cached=0):
    """A tenant's prefill and decode, half of the time each."""
    common = {"tenant_id": tenant_id, "tier": tier, "gpu_ns": hours * HOUR // 2}
    return [
        line(phase="prefill", prompt_tokens=prompt, cached_tokens=cached, **common),
        line(phase="decode", output_tokens=output, requests=requests, **common),
    ]


CASES = {
    "volume": (ride(2), ride(3, requests=150, prompt=15_000, output=7_500), 3_600_000, "a sent 150 requests after 100"),
    "prompt length": (
        ride(2),
        [ride(4, prompt=20_000)[0], ride(2)[1]],
        3_600_000,
        "a's prompts went from 100 to 200 tokens",
    ),
    "cache": (
        ride(2),
        [ride(1, cached=5_000)[0], ride(2)[1]],
        -1_800_000,
        "the cache served 50 % of a's prompts after 0 %",
    ),
    "output length": (
        ride(2),
        [ride(2)[0], ride(4, output=10_000)[1]],
        3_600_000,
        "a's answers went from 50 to 100 tokens",
    ),
    "efficiency": (ride(2), ride(3), 3_600_000, "a's tokens took 1.5× the GPU time"),
    "new": (ride(2), [*ride(2), *ride(1, tenant_id="z")], 3_600_000, "z is new"),
    "gone": ([*ride(2), *ride(1, tenant_id="z")], ride(2), -3_600_000, "z is gone"),
    "idle": (
        [*ride(2), line(account="idle", gpu_ns=HOUR)],
        [*ride(2), line(account="idle", gpu_ns=3 * HOUR)],
        7_200_000,
        "GPUs idled 3.00 GPU·h after 1.00",
    ),
    "overhead": (
        [*ride(2), line(account="overhead", gpu_ns=HOUR)],
        [*ride(2), line(account="overhead", gpu_ns=2 * HOUR)],
        3_600_000,
        "loading and recomputing took 2.00 GPU·h after 1.00",
    ),
    "unobserved": (
        [*ride(2), line(account="unobserved", gpu_ns=HOUR)],
        [*ride(2), line(account="unobserved", gpu_ns=2 * HOUR)],
        3_600_000,
        "nobody saw 2.00 GPU·h after 1.00",
    ),
}


@pytest.mark.parametrize("effect", CASES)
def test_one_change_is_one_effect_and_the_headline_names_it(effect):
    before, after, amount, words = CASES[effect]
    explanation = cause(before, after)
    assert explanation.effects == {effect: amount}
    assert words in headline(explanation)


def test_a_bill_after_nothing_is_more_by_its_amount():
    assert "The bill is 7.2000 more: 7.2000 USD after 0.0000" in headline(cause([], ride(2)))


def test_a_new_rate_is_the_rate_effect_alone():
    rates = (rate("3.60", to_ns=START + DAY), rate("7.20", from_ns=START + DAY))
    explanation = cause(ride(2), ride(2), rates)
    assert explanation.effects == {"rate": 7_200_000}
    assert "a GPU-hour of a costs 7.2000 USD after 3.6000" in headline(explanation)


def test_an_unchanged_rate_has_no_effect_however_amounts_were_rounded():
    explanation = cause([line(gpu_ns=n, phase=p) for n, p in ((7, "decode"), (11, "prefill"))], [line(gpu_ns=999)])
    assert "rate" not in explanation.effects


def test_idle_that_a_policy_moves_is_the_tenants_idle_effect():
    before = [*ride(1), line(account="idle", gpu_ns=HOUR)]
    after = [*ride(1), line(account="idle", gpu_ns=2 * HOUR)]
    explanation = cause(before, after, idle_policy="weighted")
    tenant = next(change for change in explanation.changes if change.account == "tenant")
    assert tenant.effects == {"idle": 3_600_000}
    assert (tenant.amount_before, tenant.amount_after) == (7_200_000, 10_800_000)
    assert "a's part of the idle time is 7.2000 after 3.6000" in headline(explanation)


traffic = st.lists(
    st.builds(
        line,
        account=st.sampled_from(["tenant", "tenant", "tenant", "idle", "overhead", "underfill", "unobserved"]),
        gpu_ns=st.integers(0, 10**13),
        prompt_tokens=st.integers(50, 10**6),
        cached_tokens=st.integers(0, 50),
        output_tokens=st.integers(0, 10**6),
        requests=st.integers(0, 1000),
        tenant_id=st.sampled_from("ab"),
        tier=st.sampled_from(["fast", "standard"]),
        phase=st.sampled_from(["prefill", "decode"]),
    ),
    max_size=8,
)


@tries(40)
@given(
    traffic, traffic, st.sampled_from(["separate", "weighted", "even"]), st.sampled_from(["tenant", "tier", "model"])
)
def test_effects_sum_to_the_difference_of_the_bills(before, after, idle_policy, by):
    rates = (rate("3.99", to_ns=START + DAY), rate("4.01", from_ns=START + DAY))
    explanation = cause(before, after, rates, idle_policy=idle_policy, by=by)
    for change in explanation.changes:
        assert sum(change.effects.values()) == change.difference
        assert all(type(amount) is int for amount in change.effects.values())
    assert sum(explanation.effects.values()) == explanation.difference
    billed = [report.total.amount_micro for report in (explanation.a, explanation.b)]
    assert [explanation.amount_before, explanation.amount_after] == [amount or 0 for amount in billed]
    json.loads(to_json(explanation))
    render(explanation, Console(file=StringIO(), width=100))


def test_without_a_rate_it_explains_gpu_time():
    explanation = explain(books([*ride(2), *[x._replace(minute_ns=START + DAY) for x in ride(3)]], ()), MONDAY, TUESDAY)
    assert explanation.unit == "GPU·ns"
    assert explanation.effects == {"efficiency": HOUR}
    assert "3.000 GPU·h after 2.000" in headline(explanation)


def test_two_currencies_and_unknown_groups_are_refused():
    rates = (rate("3.60", to_ns=START + DAY), rate("3.60", currency="EUR", from_ns=START + DAY))
    with pytest.raises(InputError, match=r"USD.*EUR"):
        cause(ride(1), ride(1), rates)
    with pytest.raises(InputError, match="cannot explain by colour"):
        cause(ride(1), ride(1), by="colour")


def test_nothing_changed_is_said():
    assert headline(cause(an_hour(), an_hour())).startswith("The bill is the same: 3.6000 USD")


def closed_monday(before, after, **options):
    """Books in which Monday was closed, and later got dearer."""
    lines = [*before, *(x._replace(minute_ns=x.minute_ns + DAY) for x in after)]
    signed = books(lines, (rate("3.60"),))
    closing = close(signed, MONDAY, **options, now_ns=TUESDAY.to_ns)
    return replace(signed, closings=(closing,), rates=(rate("36"),))


def test_a_closed_period_is_explained_as_it_was_closed():
    explanation = explain(closed_monday(ride(2), ride(2)), MONDAY, TUESDAY, now_ns=TUESDAY.to_ns)
    assert explanation.effects == {"rate": 64_800_000}
    assert explanation.notes == ("2026-10-01 is as it was closed at 2026-10-03T00:00:00Z.",)
    anew = explain(closed_monday(ride(2), ride(2)), MONDAY, TUESDAY, idle_policy="even", now_ns=TUESDAY.to_ns)
    assert anew.difference == 0
    assert "closed otherwise; here it is computed anew" in anew.notes[0]


def test_an_open_period_is_billed_the_way_the_closed_one_was():
    idle = [*ride(1), line(account="idle", gpu_ns=HOUR)]
    signed = closed_monday(idle, idle, idle_policy="weighted")
    explanation = explain(signed, MONDAY, TUESDAY, now_ns=TUESDAY.to_ns)
    assert {report.idle_policy for report in (explanation.a, explanation.b)} == {"weighted"}
    under_tokens = replace(signed, ledgers={"roofline": signed.ledger})
    other = explain(under_tokens, MONDAY, TUESDAY, policy="tokens", now_ns=TUESDAY.to_ns)
    assert "made differently (steps split by roofline, idle weighted; steps split by tokens" in other.notes[-1]


def test_a_closed_bill_shows_teams_by_their_names_of_today():
    signed = replace(books(ride(2)), tenants=(Tenant("a", "a", "x", None, None, 0, None),))
    closing = close(signed, MONDAY, early=True, now_ns=0)
    renamed = replace(signed, closings=(closing,), renames=(TeamRename("x", "y", 5, 5),))
    explanation = explain(renamed, MONDAY, TUESDAY, by="team", now_ns=TUESDAY.to_ns)
    assert [change.name for change in explanation.changes if change.account == "tenant"] == ["y"]


def test_a_period_that_is_not_over_is_compared_so_far_and_says_so():
    declared = Capacity("h", "H100", 1, START, None, "")
    lines = [*ride(2), *(x._replace(minute_ns=x.minute_ns + DAY) for x in ride(2))]
    open_books = replace(books(lines), capacities=(declared,))
    explanation = explain(open_books, MONDAY, TUESDAY, now_ns=START + DAY + 6 * HOUR + 1)
    assert headline(explanation).startswith("So far the bill is 75 % less")
    assert "2026-10-02 so far, to 2026-10-02 06:01:00: it is not over" in explanation.notes[0]
    assert explanation.b.wall_gpu_ns == 6 * HOUR + MINUTE_NS
    assert json.loads(to_json(explanation))["periods"][1]["to"] == "2026-10-02T06:01:00Z"


def test_a_period_that_is_still_to_come_cannot_be_explained():
    with pytest.raises(InputError, match="begins at 2026-10-02T00:00:00Z, which is still to come"):
        explain(books(ride(2)), MONDAY, TUESDAY, now_ns=START + HOUR)


PITCH_NS = 110_000_000


def test_many_tenants_stay_on_one_screen_and_still_add_up():
    before = [x for number in range(40) for x in ride(1, tenant_id=f"t{number:02}")]
    after = [x for number in range(40) for x in ride(1 + number, tenant_id=f"t{number:02}")]
    page = StringIO()
    render(cause(before, after), Console(file=page, width=100))
    lines = page.getvalue().splitlines()
    assert len(lines) < 24
    assert "t39" in page.getvalue()
    others = next(text.split() for text in lines if "28 others" in text)
    assert others[2:5] == ["100.80", "1,461.60", "+1,360.80"]


def arrivals(start_ns, short_tier):
    """Eight requests at once again and again; of each eight, one is short."""
    for number in range(240):
        is_short = number % 8 == 0
        tier, prompt, output = (short_tier, 64, 16) if is_short else ("standard", 512, 128)
        at_ns = start_ns + number // 8 * PITCH_NS
        yield Arrival(f"{start_ns}-{number}", "chat", tier, at_ns, prompt, output)


@pytest.fixture(scope="module")
def fast_mode(tmp_path_factory):
    """Two days on the embedded engine: the same requests, on the second day the short ones in fast mode."""
    replica = Replica(gpu("h100"), model("llama-3-8b"))
    with create_store(tmp_path_factory.mktemp("fast")) as store:
        for period, tier in ((MONDAY, "standard"), (TUESDAY, "fast")):
            config = EmbeddedEngine(replica, max_num_seqs=64, fast_cap=1, engine_id="e").config([period.name])
            recorder = Recorder(store, bulk=True)
            replay(Engine(config, recorder, period.from_ns), arrivals(period.from_ns, tier), None, lambda: None)
            recorder.flush()
        return Books(store.read(LEDGER), tuple(store.runs()), (rate("4.29"),))


def test_short_requests_in_fast_mode_are_found_as_the_cause(fast_mode):
    explanation = explain(fast_mode, MONDAY, TUESDAY)
    assert explanation.requests() == (240, 240)
    tenant = explanation.changes[0]
    assert 1.25 < explanation.amount_after / explanation.amount_before < 1.6
    assert max(tenant.effects, key=tenant.effects.get) == "tier mix"
    page = StringIO()
    render(explanation, Console(file=page, width=100))
    shown = page.getvalue()
    assert "with as many requests" in shown
    assert "12 % of chat's requests, the short ones, moved to fast mode, riding alone" in shown
    assert len(shown.splitlines()) <= 24
