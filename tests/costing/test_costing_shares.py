"""The integer rule: whole nanoseconds, all of them, the same by cell and by column."""

import pytest
from costing_helpers import US, case_a, case_b, make_cell, make_model, make_step, with_experts, with_ridge
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import tries

from farebox.costing.rule import SplitError, cell_weights, split_step
from farebox.costing.shares import split_steps
from farebox.events import SHARES, STEPS
from farebox.roofline.step_model import UNITS_PER_NS, StepModel

MODEL = make_model()
FREE = make_model(0, 0, 0)

ordinary = st.integers(0, 1000)
adversarial = st.one_of(ordinary, ordinary, st.integers(0, 2**40), st.integers(0, 2**62), st.just(2**30))
units = st.one_of(st.integers(0, 10**12), st.integers(0, 2**52), st.just(0))
plain_models = st.builds(make_model, units, units, st.integers(0, 2**36), st.integers(0, 2**30))
models = plain_models | plain_models.map(with_ridge) | plain_models.map(with_experts)
cell_values = st.tuples(adversarial, adversarial, st.one_of(units, st.integers(0, 2**62)))


def cells_of(values, step_seq=0):
    return [
        make_cell(
            step_seq=step_seq,
            tenant_id=f"t{i // 2:04}",
            phase=("decode", "prefill")[i % 2],
            seqs=seqs,
            rows=rows,
            attn=attn,
        )
        for i, (seqs, rows, attn) in enumerate(values)
    ]


def test_worked_case_a():
    assert split_step(case_a(), MODEL, 9_240_000, 1, True) == [2_560_482, 3_005_783, 3_673_735]


def test_worked_case_b_and_its_extra_nanosecond():
    assert split_step(case_b(), MODEL, 12_700_000, 1, True) == [295_000, 695_000, 1_295_000, 10_415_000]
    assert split_step(case_b(), MODEL, 12_700_001, 1, True) == [295_000, 695_000, 1_295_000, 10_415_001]
    assert split_step(case_b(), MODEL, 12_700_000, 8, False) == [2_360_000, 5_560_000, 10_360_000, 83_320_000]


def test_ties_go_to_the_earlier_cell():
    cells = [make_cell(tenant_id=name) for name in "abc"]
    assert split_step(cells, None, 100, 1, True) == [34, 33, 33]
    assert split_step(cells, None, 1, 1, True) == [1, 0, 0]


def test_every_cell_may_get_one_more_nanosecond():
    """Durations telescope: a step of 1.5 ns may be told as 2 ns, and two cells of 0.75 ns then round up together."""
    cells = [make_cell(tenant_id=name, attn=UNITS_PER_NS * 3 // 4) for name in "ab"]
    assert split_step(cells, FREE, 2, 1, False) == [1, 1]
    assert split_step(cells, FREE, 1, 1, False) == [1, 0]
    steps, shares = tables([(make_step(duration_ns=2), cells)])
    assert split_steps(steps, shares, FREE, False)[1]["gpu_ns"].to_pylist() == [1, 1]


@pytest.mark.parametrize("duration_ns", [12_699_999, 12_700_005])
def test_a_modelled_step_must_take_the_models_time(duration_ns):
    with pytest.raises(SplitError, match="not the time that the step model gives"):
        split_step(case_b(), MODEL, duration_ns, 1, False)
    steps, shares = tables([(make_step(duration_ns=duration_ns), case_b())])
    with pytest.raises(SplitError, match=r"step 0: .* not the time"):
        split_steps(steps, shares, MODEL, False)


def test_only_measured_steps_can_do_without_a_model():
    with pytest.raises(SplitError, match="step model"):
        split_step(case_a(), None, 1, 1, False)
    with pytest.raises(SplitError, match="step model"):
        split_steps(*tables([(make_step(duration_ns=1), case_a())]), None, False)
    assert split_step(case_b(), None, 515, 1, True) == [1, 1, 1, 512]


def test_a_key_that_is_all_zero_hands_over_to_the_other_key():
    rows_only = [make_cell(tenant_id="a", seqs=0, rows=1), make_cell(tenant_id="b", seqs=0, rows=3)]
    assert cell_weights(rows_only, make_model(400, 8, 0)) == [102, 306]
    seqs_only = [make_cell(tenant_id="a", seqs=3, rows=0), make_cell(tenant_id="b", seqs=1, rows=0)]
    assert cell_weights(seqs_only, make_model(400, 8, 0)) == [306, 102]
    neither = [make_cell(tenant_id=name, seqs=0, rows=0) for name in "ab"]
    assert cell_weights(neither, make_model(400, 8, 0)) == [408, 0]
    for cells, expected in ((rows_only, [1, 3]), (seqs_only, [3, 1]), (neither, [4, 0])):
        assert split_step(cells, FREE, 4, 2, True) == [2 * ns for ns in expected]
        steps, shares = tables([(make_step(duration_ns=4, gpus=2), cells)])
        assert split_steps(steps, shares, FREE, True)[1]["gpu_ns"].to_pylist() == [2 * ns for ns in expected]


def test_sums_beyond_the_columns_integers_stay_exact():
    """Each cell alone would fit; a crowd of them does not."""
    crowd = [make_cell(tenant_id=f"{i:04}", attn=2**50 - 1 - i) for i in range(4100)]
    steps, shares = tables([(make_step(duration_ns=2**43 + 1), crowd)])
    assert split_steps(steps, shares, MODEL, True)[1]["gpu_ns"].to_pylist() == split_step(
        crowd, MODEL, 2**43 + 1, 1, True
    )


def test_a_linear_term_beyond_the_columns_integers_stays_exact():
    model, cells = make_model(row=2**35), [make_cell(rows=2**29 - 1), make_cell(tenant_id="b", attn=2**49)]
    steps, shares = tables([(make_step(duration_ns=10**9 + 7), cells)])
    expected = split_step(cells, model, 10**9 + 7, 1, True)
    assert split_steps(steps, shares, model, True)[1]["gpu_ns"].to_pylist() == expected


def test_time_without_a_cell_is_refused():
    assert split_step([], MODEL, 0, 1, True) == []
    with pytest.raises(SplitError, match="no cell"):
        split_step([], MODEL, 1, 1, True)
    with pytest.raises(SplitError, match="step 0 took time"):
        split_steps(*tables([(make_step(duration_ns=1), [])]), MODEL, True)


def tables(steps):
    return (
        STEPS.to_arrow(step for step, _ in steps),
        SHARES.to_arrow(cell for _, cells in steps for cell in cells),
    )


@given(st.lists(cell_values, min_size=1, max_size=6), models, st.integers(0, 2**40), st.integers(1, 8))
def test_shares_add_up_to_the_step(values, model, duration, gpus):
    cells = cells_of(values)
    assert sum(cell_weights(cells, model)) == model.step(sum(c.rows for c in cells), sum(c.attn for c in cells))
    assert sum(split_step(cells, model, duration, gpus, True)) == duration * gpus
    assert min(split_step(cells, model, duration, gpus, True)) >= 0


@tries(100)
@given(st.data(), models, st.booleans(), st.booleans())
def test_columns_and_cells_follow_one_rule(data, model, measured, known):
    model = model if known or not measured else None
    steps = []
    for step_seq in data.draw(st.lists(st.integers(0, 50), max_size=5, unique=True).map(sorted)):
        values = data.draw(st.lists(cell_values, min_size=1, max_size=5))
        cells = cells_of(values, step_seq)
        duration = data.draw(durations(cells, model, measured))
        steps.append((make_step(step_seq=step_seq, duration_ns=duration, gpus=data.draw(st.integers(1, 8))), cells))
    filled_steps, filled = split_steps(*tables(steps), model, measured)
    expected = [split_step(cells, model, s.duration_ns, s.gpus, measured) for s, cells in steps]
    assert filled["gpu_ns"].to_pylist() == [ns for split in expected for ns in split]
    for record, (step, cells), split in zip(STEPS.from_arrow(filled_steps), steps, expected, strict=True):
        prefill = sum(ns for cell, ns in zip(cells, split, strict=True) if cell.phase == "prefill")
        assert record.prefill_ns * step.gpus == prefill
        assert record.prefill_ns + record.decode_ns == step.duration_ns
        assert min(record.prefill_ns, record.decode_ns) >= 0


@st.composite
def durations(draw, cells, model, measured):
    if measured:
        return draw(st.integers(0, 2**45))
    total = model.step(sum(c.rows for c in cells), sum(c.attn for c in cells))
    assume(total < 2**79)
    return total // UNITS_PER_NS + draw(st.integers(0, 1 if total % UNITS_PER_NS else 0))


def test_splitting_keeps_schema_and_accepts_no_rows():
    steps, shares = split_steps(*tables([]), MODEL, True)
    assert (steps.schema, shares.schema) == (STEPS.schema, SHARES.schema)
    steps, shares = split_steps(*tables([(make_step(duration_ns=9), case_a())]), MODEL, True)
    assert (steps.schema, shares.schema) == (STEPS.schema, SHARES.schema)


@pytest.mark.parametrize(
    ("steps", "cells", "message"),
    [
        ([1, 0], [], "steps are not in order: step 0 follows 1"),
        ([0, 0], [], "steps are not in order"),
        ([0], [(0, "b", "decode"), (0, "a", "decode")], "step 0: cell .*'a'.* not in the order of account"),
        ([0], [(0, "a", "prefill"), (0, "a", "decode")], "not in the order"),
        ([0], [(0, "a", "decode"), (0, "a", "decode")], "not in the order"),
        ([0, 1], [(1, "a", "decode"), (0, "a", "decode")], "not in the order"),
        ([0, 2], [(0, "a", "decode"), (1, "a", "decode")], "cells of step 1"),
        ([0], [(3, "a", "decode")], "cells of step 3"),
        ([0, 5], [(0, "a", "decode")], "step 5 took time"),
    ],
)
def test_tables_out_of_order_are_refused(steps, cells, message):
    shares = SHARES.to_arrow(make_cell(step_seq=seq, tenant_id=t, phase=phase) for seq, t, phase in cells)
    with pytest.raises(SplitError, match=message):
        split_steps(STEPS.to_arrow(make_step(step_seq=s, duration_ns=10) for s in steps), shares, MODEL, True)


def test_tenants_sort_by_code_point():
    cells = [make_cell(tenant_id=t) for t in sorted(["", "Z", "a", "é", "\U0001f600", "\uffff"])]
    split_steps(*tables([(make_step(duration_ns=6), cells)]), MODEL, True)


@pytest.mark.parametrize("field", ["seqs", "rows", "attn"])
def test_negative_counts_are_refused(field):
    with pytest.raises(SplitError, match=f"{field} is negative"):
        split_steps(*tables([(make_step(duration_ns=6), [make_cell(**{field: -1})])]), MODEL, True)


def test_a_real_models_json_splits_the_same():
    again = StepModel.from_json(MODEL.to_json())
    assert cell_weights(case_b(), again) == [295 * US, 695 * US, 1295 * US, 10415 * US]
