"""Last month under another policy: only what tenants pay among each other changes."""

import random
from collections import Counter

import pyarrow as pa
import pytest
from costing_helpers import US, make_cell, make_model, make_request, make_run, make_step
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing.ledger import Bookkeeper
from farebox.costing.policies import POLICIES, PolicyError
from farebox.costing.repolicy import ledger_under, only_requests
from farebox.costing.rollup import Totals
from farebox.costing.rule import SplitError
from farebox.costing.shares import split_steps
from farebox.costing.stored_steps import STEP_COLUMNS
from farebox.engine.arrival import Arrival
from farebox.engine.config import EngineConfig
from farebox.engine.engine import Engine
from farebox.engine.replay import replay
from farebox.errors import InputError
from farebox.events import LEDGER, MINUTE_NS, REQUESTS, SHARES, STEPS

MODEL = make_model(row_comm=US // 7)


class Tape:
    """A sink that keeps everything."""

    def __init__(self):
        self.last, self.steps, self.cells, self.requests = None, [], [], []

    def run(self, run):
        self.last = run

    def step(self, step, cells):
        self.steps.append(step)
        self.cells.extend(cells)

    def request(self, request):
        self.requests.append(request)


@pytest.fixture(scope="module")
def recorded():
    """A busy engine that preempts, with a fast tenant who holds others off: the run, its tables and its ledger."""
    config = EngineConfig(
        engine_id="e", run_id="r", host="h", gpu_type="H100", gpus=2, model="m", weights="bf16", kv_blocks=60,
        block_bytes=1 << 21, step_model=MODEL, max_num_seqs=12, max_num_batched_tokens=400, fast_cap=4,
    )  # fmt: skip
    dice = random.Random(7)
    start = MINUTE_NS - 2 * 10**9
    tiers = ("fast", "standard", "batch")
    arrivals = [
        Arrival(f"{n}", f"t{n % 5}", tiers[n % 7 % 3], start + n * 10**7, dice.randint(1, 300), 60) for n in range(120)
    ]
    tape = Tape()
    replay(Engine(config, tape, 0), arrivals)
    run = tape.last
    tape.steps = [
        step._replace(held_by=step.held_by and (step.held_by, "operator")[step.step_seq % 2]) for step in tape.steps
    ]
    steps, shares = split_steps(STEPS.to_arrow(tape.steps), SHARES.to_arrow(tape.cells), MODEL, False)
    requests = REQUESTS.to_arrow(tape.requests)
    return run, steps, shares, requests, Bookkeeper(run).book(steps, shares, requests, run.wall_end_ns)


def under(policy, run, steps, shares, requests):
    """Stored rows as a store may hand them over: cut anywhere, files in any order, other runs among them.

    With the requests that the recorded ledger tells of, as a bill has them.
    """
    stranger = steps.slice(0, 3).set_column(
        1, steps.schema.field(1), pa.array(["other"] * min(3, len(steps)), pa.string())
    )
    cut_steps = [*steps.to_batches(max_chunksize=97), *stranger.to_batches()]
    cut_shares = shares.to_batches(max_chunksize=101)
    random.Random(1).shuffle(cut_steps)
    random.Random(2).shuffle(cut_shares)
    ledger = ledger_under(policy, run, (batch.select(list(STEP_COLUMNS)) for batch in cut_steps), iter(cut_shares))
    assert not any(ledger["requests"].to_pylist())
    recorded = Bookkeeper(run).book(steps, shares, requests, run.wall_end_ns)
    lines = Totals(LEDGER.schema, LEDGER.key)
    lines.add(pa.concat_tables([ledger, only_requests(recorded)]))
    return lines.all().sort_by([(name, "ascending") for name in (*LEDGER.sort, "basis")])


def by_account(ledger):
    sums = Counter()
    for line in LEDGER.from_arrow(ledger):
        sums[line.account] += line.gpu_ns
    return sums


def others(ledger):
    return [line for line in LEDGER.from_arrow(ledger) if line.account != "tenant"]


def counts(ledger):
    """Everything but GPU time."""
    return [line._replace(gpu_ns=0) for line in LEDGER.from_arrow(ledger)]


def test_the_bills_own_policy_gives_the_stored_ledger(recorded):
    *events, stored = recorded
    assert under("roofline", *events).equals(stored)
    steps, shares = STEPS.from_arrow(events[1]), SHARES.from_arrow(events[2])
    assert any(step.held_by and step.running < 32 for step in steps)
    assert {"underfill", "overhead"} <= {cell.account for cell in shares}


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "roofline"])
def test_what_is_no_tenants_stays_and_tenants_share_the_same_sum(recorded, policy):
    *events, stored = recorded
    ledger = under(policy, *events)
    assert others(ledger) == others(stored)
    assert counts(ledger) == counts(stored)
    assert by_account(ledger) == by_account(stored)
    assert not ledger.equals(stored)
    assert ledger.schema == LEDGER.schema


def with_held_by(steps, held_by):
    field = steps.schema.field("held_by")
    return steps.set_column(steps.schema.names.index("held_by"), field, pa.array(held_by, pa.string()))


def test_a_fast_tenant_pays_for_the_seats_it_keeps_empty(recorded):
    """Had nobody held the others off, its tier would pay less, and the others more."""
    run, steps, shares, requests, _ = recorded
    held_by = [None if name == "operator" else name for name in steps["held_by"].to_pylist()]
    paid, unheld = Counter(), Counter()
    for sums, told in ((paid, held_by), (unheld, [None] * len(steps))):
        for line in LEDGER.from_arrow(under("roofline", run, with_held_by(steps, told), shares, requests)):
            sums[line.account, line.tier] += line.gpu_ns
    assert paid["tenant", "fast"] > unheld["tenant", "fast"]
    assert paid["tenant", "standard"] < unheld["tenant", "standard"]
    assert sum(paid.values()) == sum(unheld.values())
    assert not any(account == "underfill" for account, _ in unheld)


def measured_run(lengths, holes):
    """Steps of one GPU on a real clock, cut by minutes, with holes in their numbers."""
    run = make_run(step_model=MODEL.to_json(), load_ns=5, gpus=2)
    steps, cells, now, seq = [], [], 10, 0
    for (gap, duration, by), hole in zip(lengths, holes, strict=False):
        seq += 1 + 3 * hole
        now += gap
        steps.append(
            make_step(
                step_seq=seq, started_ns=now, duration_ns=duration, gpus=2, held_by=by, running=3, idle_before_ns=gap
            )
        )
        cells += [
            make_cell(step_seq=seq, started_ns=now, account="overhead", phase="prefill", rows=40, attn=seq),
            make_cell(step_seq=seq, started_ns=now, rows=2, seqs=2, output_tokens=2, attn=10**9),
            make_cell(step_seq=seq, started_ns=now, tenant_id="b", phase="prefill", rows=1 + seq, cached_tokens=4),
        ]
        now += duration
    run = run._replace(heartbeat_ns=now + 100)
    steps, shares = split_steps(STEPS.to_arrow(steps), SHARES.to_arrow(cells), MODEL, True)
    requests = REQUESTS.to_arrow([make_request(finished_ns=now)])
    return run, steps, shares, requests, Bookkeeper(run).book(steps, shares, requests, run.wall_end_ns)


spans = st.tuples(
    st.integers(0, MINUTE_NS), st.integers(0, 2 * MINUTE_NS), st.sampled_from([None, "a", "z", "operator"])
)


@tries(25)
@given(st.lists(spans, max_size=4), st.lists(st.booleans(), min_size=4, max_size=4), st.sampled_from(sorted(POLICIES)))
def test_measured_runs_with_holes_keep_what_is_nobodys_too(lengths, holes, policy):
    *events, stored = measured_run(lengths, holes)
    ledger = under(policy, *events)
    assert others(ledger) == others(stored)
    assert by_account(ledger) == by_account(stored)
    if policy == "roofline":
        assert ledger.equals(stored)


def test_cells_whose_step_is_lost_are_an_error_and_so_are_steps_without_cells(recorded):
    run, steps, shares, requests, _ = recorded
    with pytest.raises(SplitError, match=f"cells of step {len(steps) - 1}, which is not among the steps"):
        under("tokens", run, steps.slice(0, len(steps) - 1), shares, requests)
    with pytest.raises(SplitError, match="took time and has no cell"):
        under("tokens", run, steps, shares.slice(0, len(shares) // 2), requests)


def test_what_cannot_be_done_is_said_first(recorded):
    run = recorded[0]
    with pytest.raises(PolicyError, match="no policy 'fair'"):
        ledger_under("fair", run, [], [])
    with pytest.raises(InputError, match="run r has no step model"):
        ledger_under("shapley", run._replace(step_model=None), [], [])
    assert by_account(ledger_under("shapley", run, [], []))["idle"] == (run.wall_end_ns - run.started_ns) * run.gpus
