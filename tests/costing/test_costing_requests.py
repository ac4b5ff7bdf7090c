"""Trouble with single requests, late events and wrong names, each with its input: more of cases C and D."""

from dataclasses import replace

from costing_books import HOUR, at, books_of, capacity, line, minutes, price, rate, read_case, tenant
from costing_helpers import make_cell, make_request, make_run, make_step

from farebox.costing.closing import close
from farebox.costing.ledger import Bookkeeper
from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.costing.shares import split_steps
from farebox.events import LEDGER, MINUTE_NS, REQUESTS, SHARES, STEPS

SECOND = 10**9


def booked(run, steps, requests):
    """Ledger lines of steps, each (step values, values of its one cell), and of requests."""
    records = [make_step(step_seq=seq, **step) for seq, (step, _) in enumerate(steps)]
    cells = [make_cell(step_seq=seq, started_ns=step["started_ns"], **cell) for seq, (step, cell) in enumerate(steps)]
    split = split_steps(STEPS.to_arrow(records), SHARES.to_arrow(cells), None, True)
    return LEDGER.from_arrow(Bookkeeper(run).book(*split, REQUESTS.to_arrow(requests), run.ended_ns))


def test_c04_a_client_that_hangs_up_pays_for_what_was_made():
    start, first, made, end = read_case("C04.events.jsonl")
    began, ended = (round(event["t"] * 10) * SECOND // 10 for event in (first, end))
    prompt, output = start["prompt_tokens"], made["output_tokens"]
    steps = [
        ({"started_ns": 0, "duration_ns": began}, {"phase": "prefill", "rows": prompt, "output_tokens": 1}),
        ({"started_ns": began, "duration_ns": ended - began}, {"rows": output - 1, "output_tokens": output - 1}),
    ]
    request = make_request(finished_ns=ended, prompt_tokens=prompt, output_tokens=output, finish_reason="abort")
    run = make_run(ended_ns=ended)
    report = build_report(
        books_of(booked(run, steps, [request]), [run], tenants=[tenant("a", start["team"])], rates=[rate("3600")]),
        by=("team",),
    )
    red = report.lines[0]
    assert (red.keys, red.requests, red.prompt_tokens, red.output_tokens) == (("red",), 1, 45, 511)
    assert red.amount_micro == report.invoice_micro == 9_400_000


def test_c22_a_refused_request_is_counted_and_costs_nothing():
    (event,) = read_case("C22.events.jsonl")
    request = make_request(
        scheduled_ns=None, prompt_tokens=event["input_tokens"], output_tokens=0, finish_reason="rejected"
    )
    run = make_run(ended_ns=HOUR)
    lines = booked(run, [], [request])
    a = build_report(books_of(lines, [run], rates=[rate()], prices=[price("llama")])).lines[0]
    assert (a.requests, a.tokens, a.gpu_ns, a.amount_micro, a.api_micro) == (1, 0, 0, 0, 0)


def test_c24_reasoning_is_output_at_the_tier_of_the_request():
    (event,) = read_case("C24.events.jsonl")
    tier, out = event["served_tier"], event["output_tokens"]
    used = line("tenant", "a", 0, tier=tier, prompt_tokens=event["input_tokens"], output_tokens=out)
    prices = [price(tier=tier, fresh="2", output="4"), price(fresh="1", output="2")]
    assert build_report(books_of([used], prices=prices)).tenants.api_micro == 10 * 2 + 160 * 4


def test_c30_more_cached_than_prompt_is_kept_priced_as_all_of_it_and_named():
    (event,) = read_case("C30.events.jsonl")
    usage = event["usage"]
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    counts = {"prompt_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
    odd = line("tenant", "a", 0, cached_tokens=cached, **counts)
    fine = line("tenant", "b", 0, cached_tokens=60_000, **counts)
    report = build_report(books_of([odd, fine], prices=[price(fresh="1", cached="0.1", output="2")]))
    a, b = report.lines[:2]
    assert (a.cached_tokens, a.api_micro) == (123_000, 60_000 // 10 + 7_400 * 2)
    assert a.api_micro == b.api_micro
    told = [note for note in report.notes() if "more cached than prompt tokens" in note]
    assert told == ["a: 63,000 more cached than prompt tokens; the prompt is priced as all cached."]


def test_d13_what_comes_late_is_booked_when_it_happened_or_corrects_the_closed_month():
    (event,) = read_case("D13.events.jsonl")
    happened, came = at(event["finished_at"]), at(event["arrived_at"])
    april, may = Period.parse("2026-04"), Period.parse("2026-05")
    late = line("tenant", "late", 0, happened, output_tokens=event["output_tokens"])
    in_time = line("tenant", "b", 0, came, output_tokens=1)
    after = books_of([in_time, late], [])
    assert [build_report(after, month).total.output_tokens for month in (april, may)] == [1000, 1]
    before = books_of([in_time], [])
    closed = replace(after, closings=(close(before, april, now_ns=came),))
    bill = build_report(closed, may)
    assert [(x.account, x.output_tokens) for x in bill.lines if x.tokens] == [
        ("tenant", 1),
        ("correction of 2026-04", 1000),
    ]
    assert bill.total.output_tokens + build_report(before, april).total.output_tokens == 1001


def test_d15_names_that_do_not_match_are_both_named():
    case = read_case("D15.json")
    (priced,), (load,) = case["prices"], case["load"]
    busy = load["busy_s"] * SECOND
    lines = [
        *minutes("tenant", "a", 0, busy, gpu_type=load["gpu"]),
        *minutes("idle", "", busy, HOUR, gpu_type=load["gpu"]),
    ]
    books = books_of(
        lines,
        [make_run(gpu_type=load["gpu"], ended_ns=HOUR)],
        rates=[rate(priced["rate"], scope="gpu_type", name=priced["gpu"])],
        capacities=[capacity(0, HOUR, gpu_type=priced["gpu"])],
    )
    report = build_report(books)
    assert (report.account("idle").amount_micro, report.account("idle").gpu_ns) == (None, HOUR - busy)
    assert report.account("unobserved").amount_micro == report.invoice_micro == 2_000_000
    for told in (
        "No rate for 1.000 GPU·h: totals are lower bounds (≥).",
        "No declared capacity for h (gpu-aaaa): the runs' walls stand in for it.",
        "h (GPU-AAAA): 1.000 GPU·h declared without a run, as unobserved.",
    ):
        assert told in report.notes()
    assert report.lines[0].gpu_ns == MINUTE_NS * 10
