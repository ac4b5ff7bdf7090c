"""Marginal time: what would go away without a tenant, in numbers and in laws."""

import random

import pytest
from costing_helpers import US, case_b, make_cell, make_model, make_run, make_step, with_experts, with_ridge
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing.ledger import Bookkeeper
from farebox.costing.marginal import MARGINAL_SUMS, marginal_lines, marginal_of, roll_marginals, step_marginals
from farebox.costing.rule import SplitError
from farebox.costing.shares import split_steps
from farebox.errors import InputError
from farebox.events import MINUTE_NS, REQUESTS, SHARES, STEPS

MODEL = make_model()
T = 12_700_000


def marginals(cells, model=MODEL, duration=T, gpus=1, measured=True):
    """Marginal GPU-ns and shares of one step, by tenant."""
    step = make_step(duration_ns=duration, gpus=gpus)
    steps, shares = split_steps(STEPS.to_arrow([step]), SHARES.to_arrow(cells), model, measured)
    found: dict[str, list[int]] = {}
    rows = zip(SHARES.from_arrow(shares), step_marginals(steps, shares, model).tolist(), strict=True)
    for cell, ns in rows:
        if cell.account == "tenant":
            sums = found.setdefault(cell.tenant_id, [0, 0])
            sums[0], sums[1] = sums[0] + ns, sums[1] + cell.gpu_ns
        else:
            assert ns == 0
    return found


def gone(*arguments, **named):
    return {tenant: ns for tenant, (ns, _) in marginals(*arguments, **named).items()}


def test_worked_case_b_is_a_signal_and_not_a_bill():
    found = gone(case_b(), measured=False)
    assert found == {"a": 220_000, "b": 620_000, "c": 1_220_000, "d": 4_400_000}
    assert sum(found.values()) == 6_460_000 < T


def test_a_measured_step_scales_it_and_gpus_multiply_it():
    assert gone(case_b(), duration=2 * T + 1, gpus=4) == {
        tenant: 4 * (ns * (2 * T + 1) // T)
        for tenant, ns in {"a": 220_000, "b": 620_000, "c": 1_220_000, "d": 4_400_000}.items()
    }


def test_all_of_a_tenants_cells_leave_together_and_who_is_alone_takes_the_step_along():
    cells = case_b()
    of_one = [cell._replace(tenant_id="a") for cell in (cells[0], cells[3])]
    found = gone([of_one[0], of_one[1], *cells[1:3]], measured=False)
    assert found["a"] == T - (300 + 6000 + 600 + 1200) * 1000
    assert gone([*of_one, make_cell(account="underfill", tenant_id="", seqs=0, rows=0)]) == {"a": T}


def test_rows_that_are_nobodys_doing_stay_and_a_seat_without_rows_keeps_the_step():
    rework = make_cell(account="overhead", tenant_id="d", phase="prefill", rows=512, attn=100 * US)
    assert gone([rework, *case_b()[:3]], measured=False)["a"] == 220_000
    seat = make_cell(tenant_id="b", seqs=1, rows=0)
    assert gone([make_cell(attn=200 * US), seat], duration=6_500_000) == {"a": 200_000, "b": 0}


def test_numbers_beyond_the_columns_are_counted_one_by_one():
    huge = make_model(weights=6000 * US << 12, row=20 * US << 12, overhead=300 * US << 12)
    cells = [cell._replace(attn=cell.attn << 12) for cell in case_b()]
    assert gone(cells, huge, T << 12) == {tenant: ns << 12 for tenant, ns in gone(case_b()).items()}
    assert marginal_of((0, 0, 0), (5, 0), MODEL, 7) == 7
    assert marginal_of((1, 1, 0), (5, 0), make_model(0, 0, 0), 7) == 0


cells_of_a_step = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from(["decode", "prefill"]), st.integers(1, 600), st.integers(0, US)),
    min_size=1, max_size=6, unique_by=lambda cell: cell[:2],
)  # fmt: skip


@tries(50)
@given(cells_of_a_step, st.sampled_from([MODEL, with_ridge(MODEL), with_experts(MODEL), make_model(row_comm=US)]))
def test_no_tenants_marginal_time_is_above_its_share_on_either_side_of_the_ridge(told, model):
    """As L(M)/M never rises, L(M) − L(M − m) ≤ L(M)·m/M: leaving never saves more than one pays, but for rounding."""
    cells = [
        make_cell(tenant_id=name, phase=phase, rows=rows, seqs=1, attn=attn) for name, phase, rows, attn in sorted(told)
    ]
    for ns, share in marginals(cells, model).values():
        assert 0 <= ns <= share + len(cells)


def a_run(lengths):
    """A measured run on two GPUs whose steps cross minutes, its tables and its ledger."""
    run = make_run(step_model=MODEL.to_json(), gpus=2, started_ns=0)
    steps, cells, now = [], [], 0
    for seq, (gap, duration) in enumerate(lengths):
        now += gap
        steps.append(make_step(step_seq=seq, started_ns=now, duration_ns=duration, gpus=2, idle_before_ns=gap))
        cells += [cell._replace(step_seq=seq, started_ns=now) for cell in case_b()]
        now += duration
    run = run._replace(heartbeat_ns=now, ended_ns=now)
    steps, shares = split_steps(STEPS.to_arrow(steps), SHARES.to_arrow(cells), MODEL, True)
    return run, steps, shares


def cut(table, seed):
    """Rows as a store may hand them over: cut anywhere, files in any order."""
    batches = table.to_batches(max_chunksize=5)
    random.Random(seed).shuffle(batches)
    return batches


spans = st.lists(st.tuples(st.integers(0, MINUTE_NS), st.integers(1, 3 * MINUTE_NS)), min_size=1, max_size=5)


@tries(15)
@given(spans, st.integers(0, 9))
def test_minutes_add_up_to_the_steps_and_what_is_covered_is_the_bill(lengths, seed):
    run, steps, shares = a_run(lengths)
    end = (run.wall_end_ns // MINUTE_NS + 1) * MINUTE_NS
    lines = list(marginal_lines(run, cut(steps, seed), cut(shares, seed)))
    whole, by_minute = (
        roll_marginals(lines, borders, 0, end).to_pylist() for borders in ([], range(0, end, MINUTE_NS))
    )
    sums = [tuple(sum(line[name] for line in some) for name in MARGINAL_SUMS) for some in (whole, by_minute)]
    assert sums[0] == sums[1]
    ledger = Bookkeeper(run).book(steps, shares, REQUESTS.to_arrow([]), run.wall_end_ns).to_pylist()
    assert sums[0][0] == sum(line["gpu_ns"] for line in ledger if line["account"] == "tenant")
    assert sums[0][1] == sum(step_marginals(steps, shares, MODEL).tolist())


def test_a_run_without_a_step_model_and_steps_without_cells_are_refused():
    run, steps, shares = a_run([(0, 5)])
    with pytest.raises(InputError, match="no step model"):
        list(marginal_lines(run._replace(step_model=None), [], []))
    with pytest.raises(SplitError, match="has no cell"):
        list(marginal_lines(run, steps.to_batches(), []))
    assert not list(marginal_lines(run, [], []))
    assert not sum(batch.num_rows for batch in marginal_lines(run, [], shares.slice(0, 0).to_batches()))
