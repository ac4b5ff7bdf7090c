"""Policies: the worked cases to the last nanosecond, and what each rule promises."""

from fractions import Fraction
from itertools import combinations, permutations

import pytest
from costing_helpers import US, case_a, case_b, make_cell, make_model, make_step, with_experts, with_ridge
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing.policies import POLICIES, PolicyError, roofline, shapley, split
from farebox.costing.rule import SplitError
from farebox.costing.shares import split_steps
from farebox.events import SHARES, STEPS

MODEL = make_model()


def test_worked_case_a():
    assert [x // US for x in roofline(case_a(), MODEL)] == [2300, 2700, 3300]
    assert shapley(case_a(), MODEL) == roofline(case_a(), MODEL)
    assert split("roofline", case_a(), MODEL, 9_240_000) == [2_560_482, 3_005_783, 3_673_735]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("roofline", [295_000, 695_000, 1_295_000, 10_415_000]),
        ("sequence", [3_175_000] * 4),
        ("tokens", [24_660, 24_660, 24_660, 12_626_020]),
        ("weighted_tokens", [49_035, 49_035, 49_034, 12_552_896]),
        ("shapley", [1_785_000, 2_185_000, 2_785_000, 5_945_000]),
    ],
)
def test_worked_case_b(policy, expected):
    assert split(policy, case_b(), MODEL, 12_700_000) == expected
    assert split(policy, case_b(), MODEL, 12_700_000, gpus=4) == [4 * ns for ns in expected]


def test_case_bs_extra_nanosecond():
    assert split("roofline", case_b(), MODEL, 12_700_001) == [295_000, 695_000, 1_295_000, 10_415_001]


def test_an_unknown_policy_is_an_error():
    with pytest.raises(PolicyError, match="choose from roofline"):
        split("fair", case_a(), MODEL, 1)


def test_prompts_and_outputs_weigh_what_one_asks_for():
    assert POLICIES["weighted_tokens"](case_b(), MODEL) == [2, 2, 2, 512]


plain_models = st.builds(make_model, st.integers(0, 500), st.integers(0, 5000), st.integers(0, 40), st.integers(0, 5))
small_models = plain_models | plain_models.map(with_ridge)
any_mixture = small_models | plain_models.map(with_experts)
sequences = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 900)), min_size=1, max_size=5)


def riders(values):
    """Each sequence its own cell."""
    return [make_cell(tenant_id=f"t{i}", rows=rows, attn=attn) for i, (rows, attn) in enumerate(values)]


def time(cells, model):
    return model.step(sum(c.rows for c in cells), sum(c.attn for c in cells)) if cells else 0


@tries(60)
@given(sequences, small_models)
def test_shapley_is_the_average_over_all_orders_of_boarding(values, model):
    cells = riders(values)
    expected, orders = [0] * len(cells), list(permutations(range(len(cells))))
    for order in orders:
        for place, who in enumerate(order):
            before = [cells[i] for i in order[:place]]
            expected[who] += time([*before, cells[who]], model) - time(before, model)
    assert shapley(cells, model) == [Fraction(x, len(orders)) for x in expected]


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 60)), min_size=1, max_size=3), small_models)
def test_sequences_of_one_cell_count_as_equal(values, model):
    cells = [make_cell(tenant_id=f"t{i}", seqs=seqs, rows=rows * seqs) for i, (seqs, rows) in enumerate(values)]
    alone = [c._replace(seqs=1, rows=c.rows // c.seqs) for c in cells for _ in range(c.seqs)]
    single = iter(shapley(alone, model))
    assert shapley(cells, model) == [sum(next(single) for _ in range(c.seqs)) for c in cells]


@given(sequences, small_models)
def test_shapley_and_roofline_conserve_the_step(values, model):
    cells = riders(values)
    assert sum(shapley(cells, model)) == time(cells, model)
    assert sum(roofline(cells, model)) == time(cells, model)


def test_shapley_conserves_where_rows_do_not_divide_by_sequences():
    cells = [make_cell(seqs=3, rows=400), make_cell(tenant_id="b", seqs=7, rows=11), make_cell(tenant_id="c", seqs=0)]
    assert sum(shapley(cells, MODEL)) == time(cells, MODEL)


def test_shapley_stays_exact_for_a_full_batch():
    cells = [make_cell(tenant_id=f"t{i:03}", rows=1 + i % 5) for i in range(70)]
    cells.append(make_cell(tenant_id="z", phase="prefill", rows=512))
    value = shapley(cells, MODEL)
    assert sum(value) == time(cells, MODEL)
    assert value[0] == value[5]
    assert value[0] < value[1]


@given(sequences, small_models, st.integers(0, 10**6), st.sampled_from(sorted(POLICIES)))
def test_every_policy_conserves_and_treats_equals_alike(values, model, duration, policy):
    model = make_model(model.overhead * US, model.weights * US, model.row * US)
    cells = riders([*values, values[0]])
    paid = split(policy, cells, model, duration)
    assert sum(paid) == duration
    assert min(paid) >= 0
    assert abs(paid[0] - paid[-1]) <= 1


@given(sequences, small_models, st.sampled_from(sorted(POLICIES)), st.randoms(use_true_random=False))
def test_names_and_order_decide_nothing_but_ties(values, model, policy, random):
    cells = riders(values)
    shuffled = random.sample(range(len(cells)), len(cells))
    before = POLICIES[policy](cells, model)
    after = POLICIES[policy]([cells[i]._replace(tenant_id="x") for i in shuffled], model)
    for new, old in enumerate(shuffled):
        assert abs(after[new] - before[old]) <= (2 if policy == "roofline" else 0)


@given(sequences, any_mixture)
def test_no_group_pays_more_than_riding_alone(values, model):
    """The core: with the model's own time, roofline shares of any group are at most what the group costs alone."""
    cells = riders(values)
    weights = roofline(cells, model)
    for size in range(1, len(cells)):
        for group in combinations(range(len(cells)), size):
            alone = time([cells[i] for i in group], model)
            assert sum(weights[i] for i in group) <= alone + 2 * size


def test_shapley_of_a_mixture_of_experts_is_refused():
    with pytest.raises(SplitError, match="not for mixtures of experts"):
        shapley(case_a(), with_experts(MODEL))


def split_by_columns(policy, steps, model):
    tables = STEPS.to_arrow(step for step, _ in steps), SHARES.to_arrow(cell for _, cells in steps for cell in cells)
    filled, shares = split_steps(*tables, model, True, policy)
    assert sum(filled["prefill_ns"].to_pylist()) + sum(filled["decode_ns"].to_pylist()) == sum(
        step.duration_ns for step, _ in steps
    )
    return shares["gpu_ns"].to_pylist()


seqs_of = st.one_of(st.integers(0, 70), st.integers(0, 4), st.just(0), st.just(2**31))
rows_of = st.one_of(st.integers(0, 40), st.integers(0, 3000), st.just(2**30))
any_attn = st.one_of(st.integers(0, 10**12), st.integers(0, 2**55))
wide_models = st.builds(
    make_model,
    st.integers(0, 2**40),
    st.one_of(st.integers(0, 2**43), st.just(0), st.just(2**55)),
    st.one_of(st.integers(0, 2**36), st.just(0)),
    st.integers(0, 2**20),
)
any_model = wide_models | wide_models.map(with_ridge)


def may_be_counted(cells, model):
    """Whether the exact Shapley value of so many memory-bound crowds ends within this test."""
    rows, seqs = sum(c.rows for c in cells), sum(max(c.seqs, 1) for c in cells)
    return rows <= model.memory_rows or (seqs <= 150 and len(cells) <= 3) or not model.weights


@tries(80)
@given(st.data(), any_model, st.sampled_from(sorted(POLICIES)))
def test_columns_follow_every_policy_as_cells_do(data, model, policy):
    steps = []
    for seq in range(data.draw(st.integers(0, 4))):
        cells = [
            make_cell(step_seq=seq, tenant_id=f"t{i // 2}", phase=("decode", "prefill")[i % 2], seqs=s, rows=r, attn=a)
            for i, (s, r, a) in enumerate(
                data.draw(st.lists(st.tuples(seqs_of, rows_of, any_attn), min_size=1, max_size=5))
            )
        ]
        if policy == "shapley" and not may_be_counted(cells, model):
            cells = [cell._replace(seqs=cell.seqs % 9, rows=cell.rows % 60) for cell in cells[:3]]
        duration, gpus = data.draw(st.integers(0, 2**40)), data.draw(st.integers(1, 8))
        steps.append((make_step(step_seq=seq, duration_ns=duration, gpus=gpus), cells))
    expected = [split(policy, cells, model, step.duration_ns, step.gpus) for step, cells in steps]
    assert split_by_columns(policy, steps, model) == [ns for one in expected for ns in one]


def test_a_crowd_gets_its_shapley_value_beyond_the_columns_integers():
    cells = [make_cell(tenant_id=f"{i}", seqs=300 + i, rows=50, attn=2**48 + i) for i in range(3)]
    step = make_step(duration_ns=10**9 + 7)
    expected = split("shapley", cells, MODEL, step.duration_ns)
    assert split_by_columns("shapley", [(step, cells)], MODEL) == expected


def test_policies_that_ask_the_model_say_so_when_there_is_none():
    step = make_step(duration_ns=100)
    assert split_by_columns("sequence", [(step, case_b())], None) == [25] * 4
    for policy in ("tokens", "roofline"):
        assert split_by_columns(policy, [(step, case_b())], None) == [0, 0, 0, 100]
    with pytest.raises(SplitError, match="step 0: the shapley policy needs the step model"):
        split_by_columns("shapley", [(step, case_b())], None)
    with pytest.raises(PolicyError, match="no policy 'fair'"):
        split_by_columns("fair", [(step, case_b())], MODEL)
