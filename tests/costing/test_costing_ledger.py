"""The bookkeeper: every nanosecond of a run in the ledger once, however its stream is cut."""

from collections import Counter

import pyarrow as pa
import pytest
from costing_helpers import make_cell, make_request, make_run, make_step
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing.arrow import total_by
from farebox.costing.ledger import Bookkeeper, LedgerError
from farebox.costing.rule import SplitError
from farebox.costing.shares import split_steps
from farebox.events import LEDGER, MINUTE_NS, REQUESTS, SHARES, STEPS

MINUTE = MINUTE_NS
NO_REQUESTS = REQUESTS.to_arrow([])


def tables(steps):
    """Split steps; each is (step values, list of cell values)."""
    records = [make_step(**values) for values, _ in steps]
    cells = [
        make_cell(step_seq=values["step_seq"], started_ns=values["started_ns"], **cell)
        for values, cells in steps
        for cell in cells
    ]
    return split_steps(STEPS.to_arrow(records), SHARES.to_arrow(cells), None, True)


def book(run, steps, heartbeat_ns=0, requests=NO_REQUESTS, resume=()):
    return LEDGER.from_arrow(Bookkeeper(run, *resume).book(*tables(steps), requests, heartbeat_ns))


def accounts(lines):
    return [(line.minute_ns // MINUTE, line.account, line.gpu_ns) for line in lines if line.gpu_ns]


def step(seq, started, duration, *cells, **values):
    return {"step_seq": seq, "started_ns": started, "duration_ns": duration, **values}, list(cells) or [{}]


def test_load_is_overhead_gaps_are_idle_and_steps_are_the_tenants():
    run = make_run(started_ns=MINUTE, load_ns=100, gpus=2)
    lines = book(run, [step(0, MINUTE + 150, 30, gpus=2)], MINUTE + 200)
    assert accounts(lines) == [(1, "idle", 2 * 70), (1, "overhead", 200), (1, "tenant", 60)]


def test_a_heartbeat_during_the_load_books_overhead_only():
    keeper = Bookkeeper(make_run(load_ns=100))
    first = keeper.book(*tables([]), NO_REQUESTS, 40)
    second = keeper.book(*tables([]), NO_REQUESTS, 140)
    assert accounts(LEDGER.from_arrow(first)) == [(0, "overhead", 40)]
    assert accounts(LEDGER.from_arrow(second)) == [(0, "idle", 40), (0, "overhead", 60)]
    assert keeper.covered_ns == 140


def test_a_hole_in_step_numbers_is_unobserved_but_for_the_idle_time_that_the_step_tells():
    steps = [step(0, 0, 10), step(4, 110, 10, idle_before_ns=30)]
    assert accounts(book(make_run(), steps)) == [(0, "idle", 30), (0, "tenant", 20), (0, "unobserved", 70)]
    steps[1][0]["idle_before_ns"] = 500
    assert accounts(book(make_run(), steps)) == [(0, "idle", 100), (0, "tenant", 20)]


def test_idle_time_up_to_a_heartbeat_shortens_the_hole():
    keeper = Bookkeeper(make_run())
    first = keeper.book(*tables([step(0, 0, 10)]), NO_REQUESTS, 60)
    second = keeper.book(*tables([step(4, 110, 10, idle_before_ns=30)]), NO_REQUESTS, 120)
    assert accounts(LEDGER.from_arrow(first)) == [(0, "idle", 50), (0, "tenant", 10)]
    assert accounts(LEDGER.from_arrow(second)) == [(0, "idle", 30), (0, "tenant", 10), (0, "unobserved", 20)]


def test_a_resumed_run_sees_a_hole_only_where_steps_are_missing():
    resumed = (10, 1)
    assert accounts(book(make_run(), [step(1, 30, 5)], resume=resumed)) == [(0, "idle", 20), (0, "tenant", 5)]
    assert accounts(book(make_run(), [step(2, 30, 5)], resume=resumed)) == [(0, "tenant", 5), (0, "unobserved", 20)]


def test_steps_are_cut_at_minute_borders_and_their_tokens_are_not():
    cell = {"phase": "prefill", "rows": 7, "output_tokens": 3, "cached_tokens": 2, "kv_block_ns": 10}
    lines = book(make_run(started_ns=MINUTE - 1), [step(0, MINUTE - 1, 3, cell)])
    assert [
        (x.minute_ns, x.gpu_ns, x.kv_block_ns, x.prompt_tokens, x.cached_tokens, x.output_tokens) for x in lines
    ] == [
        (0, 1, 3, 0, 0, 0),
        (MINUTE, 2, 7, 9, 2, 3),
    ]


def test_an_end_on_the_border_belongs_to_the_minute_before():
    request = make_request(finished_ns=MINUTE)
    lines = book(make_run(), [step(0, MINUTE - 5, 5, {"output_tokens": 1})], requests=REQUESTS.to_arrow([request]))
    tenant = [line for line in lines if line.account == "tenant"]
    assert [(x.minute_ns, x.gpu_ns, x.output_tokens, x.requests) for x in tenant] == [(0, 5, 1, 1)]


def test_a_request_that_never_rode_still_counts_in_a_minute_of_its_run():
    run = make_run(started_ns=MINUTE)
    requests = REQUESTS.to_arrow([make_request(finished_ns=MINUTE, finish_reason="rejected", scheduled_ns=None)])
    lines = book(run, [], requests=requests)
    assert [(x.minute_ns, x.account, x.phase, x.gpu_ns, x.requests) for x in lines] == [
        (MINUTE, "tenant", "decode", 0, 1)
    ]


def test_a_span_of_days_is_cut_into_its_minutes():
    lines = book(make_run(), [step(0, 0, 3000 * MINUTE + 1, {"kv_block_ns": 2**62})], 5000 * MINUTE)
    assert sum(line.gpu_ns for line in lines) == 5000 * MINUTE
    assert sum(line.kv_block_ns for line in lines) == 2**62
    assert max(line.gpu_ns for line in lines) == MINUTE
    assert len(lines) == 5001


def test_recomputed_rows_are_overhead_and_no_prompt_tokens():
    cell = {"account": "overhead", "phase": "prefill", "rows": 7, "cached_tokens": 3}
    (line,) = book(make_run(), [step(0, 0, 9, cell)])
    assert (line.account, line.tenant_id, line.gpu_ns) == ("overhead", "a", 9)
    assert (line.prompt_tokens, line.cached_tokens) == (0, 0)


def test_lines_carry_the_runs_names_and_the_steps_basis():
    (line,) = book(make_run(model="llama", host="h1", gpu_type="A100"), [step(0, 0, 9, basis="interval")])
    assert (line.engine_id, line.host, line.gpu_type, line.model, line.basis) == (
        "e",
        "h1",
        "A100",
        "llama",
        "interval",
    )


def test_steps_without_duration_lose_no_tokens_and_no_time():
    steps = [step(0, 0, 0, {"output_tokens": 1, "kv_block_ns": 5}), step(1, MINUTE, 0, {"output_tokens": 1})]
    lines = book(make_run(), steps, MINUTE)
    assert accounts(lines) == [(0, "idle", MINUTE)]
    assert [(x.minute_ns, x.output_tokens, x.kv_block_ns) for x in lines if x.account == "tenant"] == [
        (0, 1, 5),
        (MINUTE, 1, 0),
    ]


@pytest.mark.parametrize(
    ("steps", "resume", "message"),
    [
        ([step(0, 90, 5)], {"covered_ns": 100}, r"engine e run r: step 0 overlaps booked time by 10 ns"),
        ([step(0, 0, 50), step(1, 49, 5)], {}, r"step 1 overlaps booked time by 1 ns"),
        ([step(3, 50, 5)], {"steps": 4}, r"step 3 comes after step 3"),
        ([step(0, 0, 5, gpus=2)], {}, r"ran on 2 GPUs, the run has 1"),
    ],
)
def test_time_is_never_booked_twice(steps, resume, message):
    keeper = Bookkeeper(make_run(), **resume)
    before = (keeper.covered_ns, keeper.steps)
    with pytest.raises(LedgerError, match=message):
        keeper.book(*tables(steps), NO_REQUESTS, 1000)
    assert (keeper.covered_ns, keeper.steps) == before


def test_shares_must_be_split_and_add_up():
    steps, shares = tables([step(0, 0, 10)])
    short = SHARES.to_arrow(cell._replace(gpu_ns=9) for cell in SHARES.from_arrow(shares))
    with pytest.raises(LedgerError, match=r"step 0: its shares are -1 GPU·ns off"):
        Bookkeeper(make_run()).book(steps, short, NO_REQUESTS, 10)
    unsplit = SHARES.to_arrow(cell._replace(gpu_ns=None) for cell in SHARES.from_arrow(shares))
    with pytest.raises(LedgerError, match=r"gpu_ns is unknown in 1 rows"):
        Bookkeeper(make_run()).book(steps, unsplit, NO_REQUESTS, 10)
    with pytest.raises(SplitError, match=r"step 0 took time"):
        Bookkeeper(make_run()).book(steps, SHARES.to_arrow([]), NO_REQUESTS, 10)


cell_values = st.fixed_dictionaries(
    {
        "account": st.sampled_from(["tenant", "overhead", "underfill"]),
        "tenant_id": st.sampled_from("ab"),
        "phase": st.sampled_from(["decode", "prefill"]),
        "rows": st.integers(0, 9),
        "output_tokens": st.integers(0, 3),
        "cached_tokens": st.integers(0, 3),
        "kv_block_ns": st.integers(0, 2**40),
    }
)
cell_lists = st.lists(
    cell_values, min_size=1, max_size=3, unique_by=lambda c: (c["account"], c["tenant_id"], c["phase"])
)
lengths = st.one_of(st.just(0), st.integers(1, 100), st.integers(0, 3 * MINUTE))
stream = st.lists(st.tuples(lengths, lengths, st.booleans(), st.integers(0, MINUTE), cell_lists), max_size=6)


@tries(40)
@given(stream, st.integers(1, 8), lengths, lengths, st.data())
def test_any_way_of_cutting_the_stream_gives_the_same_complete_ledger(stream, gpus, load, tail, data):
    run = make_run(gpus=gpus, started_ns=7 * MINUTE - 13, load_ns=load)
    steps, requests, hole_before, now, seq = [], [], [], run.started_ns, 0
    for gap, duration, hole, idle_before, cells in stream:
        cells.sort(key=lambda c: (c["account"], c["tenant_id"], c["phase"]))
        seq += 5 if hole else 0
        values = {"gpus": gpus, "idle_before_ns": idle_before}
        steps.append(step(seq, now + gap, duration, *cells, **values))
        hole_before.append(hole)
        now, seq = now + gap + duration, seq + 1
        requests.append(make_request(request_id=str(seq), finished_ns=now))
    end = now + tail

    whole = Bookkeeper(run)
    expected = whole.book(*tables(steps), REQUESTS.to_arrow(requests), end)
    covered = whole.covered_ns - run.started_ns
    assert sum(expected["gpu_ns"].to_pylist()) == covered * gpus
    assert by_minute(expected) == walls(run.started_ns, whole.covered_ns, gpus)
    assert min([0, *expected["gpu_ns"].to_pylist()]) >= 0

    keeper, parts, start = Bookkeeper(run), [], 0
    for cut in [*data.draw(st.lists(st.integers(0, len(steps)), max_size=6).map(sorted)), len(steps)]:
        told = 0
        if cut < len(steps) and not hole_before[cut]:
            told = data.draw(st.integers(0, steps[cut][0]["started_ns"]))
        parts.append(keeper.book(*tables(steps[start:cut]), REQUESTS.to_arrow(requests[start:cut]), told))
        keeper, start = data.draw(st.sampled_from([keeper, Bookkeeper(run, keeper.covered_ns, keeper.steps)])), cut
    parts.append(keeper.book(*tables([]), NO_REQUESTS, end))
    assert keeper.covered_ns == whole.covered_ns
    assert summed(pa.concat_tables(parts)) == summed(expected)


def by_minute(lines):
    found = Counter()
    for each in LEDGER.from_arrow(lines):
        found[each.minute_ns] += each.gpu_ns
    return +found


def walls(start, end, gpus):
    """GPU time of each minute of a wall clock."""
    minutes = range(start // MINUTE * MINUTE, end, MINUTE)
    return +Counter({at: (min(at + MINUTE, end) - max(at, start)) * gpus for at in minutes})


def test_riders_of_a_step_that_crosses_a_border_fill_both_minutes():
    """Each part rounded down on its own would leave a nanosecond of the first minute to nobody."""
    lines = book(make_run(started_ns=MINUTE - 3), [step(0, MINUTE - 3, 6, *({"tenant_id": name} for name in "abc"))])
    assert accounts(lines) == [(0, "tenant", 1)] * 3 + [(1, "tenant", 1)] * 3
    lines = book(make_run(started_ns=MINUTE - 1), [step(0, MINUTE - 1, 3, *({"tenant_id": name} for name in "abc"))])
    assert by_minute(LEDGER.to_arrow(lines)) == {0: 1, MINUTE: 2}
    assert [sum(x.gpu_ns for x in lines if x.tenant_id == name) for name in "abc"] == [1, 1, 1]


def summed(lines):
    totals = total_by(lines, LEDGER.key)
    return sorted(LEDGER.from_arrow(totals))


def test_no_events_no_lines():
    lines = Bookkeeper(make_run()).book(*tables([]), NO_REQUESTS, 0)
    assert (len(lines), lines.schema) == (0, LEDGER.schema)
