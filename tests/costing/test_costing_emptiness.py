"""Fast mode: what a batch kept small costs goes to whoever kept it small, and to nobody else."""

from fractions import Fraction

import pytest
from costing_helpers import US, make_cell, make_model, make_step
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.costing.emptiness import REFERENCE_OCCUPANCY, empty_part, fill_cells
from farebox.costing.rule import SplitError, split_step
from farebox.costing.shares import split_steps
from farebox.events import SHARES, STEPS
from farebox.roofline.step_model import UNITS_PER_NS

MODEL = make_model(overhead=0, row=0, row_comm=250 * US)
"""T(n) = 6000 + 250·n µs."""
LENGTH = 7_000_000


def tables(steps):
    return STEPS.to_arrow(step for step, _ in steps), SHARES.to_arrow(cell for _, cells in steps for cell in cells)


def paid(step, cells, model=MODEL, measured=True):
    """What each cell pays, by (account, tenant, tier, phase); the columns must say the same."""
    filled = fill_cells(step, cells, model, measured)
    assert SHARES.from_arrow(split_steps(*tables([(step, cells)]), model, measured)[1]) == filled
    assert sum(cell.gpu_ns for cell in filled) == step.duration_ns * step.gpus
    return {(c.account, c.tenant_id, c.tier, c.phase): c.gpu_ns for c in filled}


def riders(*cells):
    return [make_cell(**dict(zip(("tenant_id", "tier", "phase", "seqs", "rows"), cell, strict=True))) for cell in cells]


ONE_AND_THREE = riders(("a", "fast", "decode", 1, 1), ("b", "standard", "decode", 3, 3))


def held(by="a", **values):
    return make_step(**({"duration_ns": LENGTH, "held_by": by, "running": 4, "waiting": 1} | values))


@pytest.mark.parametrize("measured", [True, False])
def test_worked_case(measured):
    """c_ref = 437.5 µs: A pays its seat and 5250 µs of emptiness, B three seats."""
    shares = paid(held(), ONE_AND_THREE, measured=measured)
    assert list(shares.values()) == [5_687_500, 1_312_500]


def test_the_worked_case_holds_where_the_time_per_rider_is_attention():
    model = make_model(overhead=0, row=0)
    cells = [cell._replace(attn=cell.seqs * 250 * US) for cell in ONE_AND_THREE]
    assert list(paid(held(), cells, model).values()) == [5_687_500, 1_312_500]


def test_the_operators_own_cap_is_underfill():
    assert paid(held("operator", gpus=2), ONE_AND_THREE) == {
        ("tenant", "a", "fast", "decode"): 875_000,
        ("tenant", "b", "standard", "decode"): 2_625_000,
        ("underfill", "", "", "decode"): 10_500_000,
    }


def test_a_tenant_without_a_cell_to_pay_with_is_named_on_underfill():
    assert paid(held("z"), ONE_AND_THREE)["underfill", "z", "", "decode"] == 5_250_000


def test_only_a_tenants_own_cell_pays_for_its_cap_and_never_its_overhead():
    cells = riders(("a", "fast", "prefill", 1, 1), ("b", "standard", "decode", 3, 3))
    cells[0] = cells[0]._replace(account="overhead")
    assert paid(held(), cells)["underfill", "a", "", "decode"] == 5_250_000


@pytest.mark.parametrize(
    ("cells", "payer"),
    [
        ([("batch", "decode"), ("fast", "decode"), ("fast", "prefill")], ("fast", "decode")),
        ([("batch", "decode"), ("fast", "prefill"), ("standard", "decode")], ("batch", "decode")),
        ([("fast", "prefill"), ("standard", "decode")], ("fast", "prefill")),
    ],
)
def test_the_fast_decode_cell_pays_or_else_the_first(cells, payer):
    step = held(running=len(cells))
    cells = riders(*(("a", tier, phase, 1, 1) for tier, phase in cells), ("b", "fast", "decode", 0, 0))
    shares = paid(step, cells)
    free = paid(step._replace(held_by=None), cells)
    more = {key: shares[key] - free[key] for key in shares}
    assert max(more, key=more.__getitem__) == ("tenant", "a", *payer)
    assert sum(value > 0 for value in more.values()) == 1


@pytest.mark.parametrize(
    "step",
    [
        held(None),
        held(None, waiting=0),
        held(running=REFERENCE_OCCUPANCY),
        held(running=0),
        held(duration_ns=0),
    ],
)
def test_a_batch_that_is_merely_quiet_or_full_enough_moves_nothing(step):
    expected = split_step(ONE_AND_THREE, MODEL, step.duration_ns, 1, True)
    assert list(paid(step, ONE_AND_THREE).values()) == expected


def test_without_a_model_nobody_knows_what_a_full_batch_takes():
    assert list(paid(held(), ONE_AND_THREE, model=None).values()) == [1_750_000, 5_250_000]
    assert list(paid(held(), ONE_AND_THREE, model=make_model(0, 0, 0)).values()) == [1_750_000, 5_250_000]


def test_times_beyond_the_columns_integers_stay_exact():
    model = make_model(overhead=2**63, weights=2**66, row=2**40)
    assert sum(paid(held(), ONE_AND_THREE, model).values()) == LENGTH


def test_steps_with_and_without_emptiness_keep_the_order_of_cells():
    steps = []
    for seq, by in enumerate(["operator", None, "z", "operator"]):
        cells = [cell._replace(step_seq=seq) for cell in ONE_AND_THREE]
        steps.append((held(by, step_seq=seq, started_ns=seq * LENGTH), cells))
    _, shares = split_steps(*tables(steps), MODEL, True)
    assert [(c.step_seq, c.account) for c in SHARES.from_arrow(shares) if c.account == "underfill"] == [
        (0, "underfill"),
        (2, "underfill"),
        (3, "underfill"),
    ]
    keys = [cell[:3] + cell[4:8] for cell in SHARES.from_arrow(shares)]
    assert keys == sorted(keys)
    assert shares.schema == SHARES.schema


def test_a_step_is_not_split_twice():
    steps, shares = split_steps(*tables([(held("operator"), ONE_AND_THREE)]), MODEL, True)
    with pytest.raises(SplitError, match="step 0 has its empty seats already"):
        split_steps(steps, shares, MODEL, True)


def test_prefill_time_stays_within_the_step():
    cells = riders(("a", "fast", "prefill", 1, 3), ("b", "standard", "decode", 3, 3))
    steps, _ = split_steps(*tables([(held("operator", gpus=3), cells)]), MODEL, True)
    (step,) = STEPS.from_arrow(steps)
    assert step.prefill_ns + step.decode_ns == LENGTH
    assert 0 < step.prefill_ns < LENGTH // 4


units = st.one_of(st.integers(0, 10**13), st.integers(0, 2**56), st.just(0))
models = st.builds(make_model, units, units, st.integers(0, 2**48), st.integers(0, 2**48))


@given(models, st.integers(1, REFERENCE_OCCUPANCY - 1), units)
def test_emptiness_is_what_the_free_seats_of_a_full_batch_would_carry(model, n, attention):
    """(T(n) − n·T(b)/b) / T(n) with equal decodes: a part of the step that shrinks with every rider."""
    mean = Fraction(attention, n)
    times = [model.step(k, 0) + k * mean for k in (n, REFERENCE_OCCUPANCY)]
    part = empty_part(model, n, n, attention)
    if times[0]:
        assert part == (times[0] - n * times[1] / REFERENCE_OCCUPANCY) / times[0]
    assert 0 <= part < 1
    own = [empty_part(model, k, k, 0) * model.step(k, 0) for k in (n, n + 1)]
    assert own[0] >= own[1]


@given(models, st.integers(1, REFERENCE_OCCUPANCY - 1), st.integers(1, 8192), units)
def test_a_prompt_beside_the_riders_makes_their_empty_seats_no_dearer(model, n, more, attention):
    """The emptiness of a step is a time: more rows make the step longer, not its empty seats."""
    decodes, with_prompt = model.step(n, attention), model.step(n + more, attention)
    if decodes and with_prompt:
        assert empty_part(model, n, n, attention) * decodes == empty_part(model, n, n + more, attention) * with_prompt


cell_values = st.tuples(st.integers(0, 40), st.integers(0, 600), units)
keys = [
    (account, tenant, tier, phase)
    for account in ("overhead", "tenant")
    for tenant in ("a", "b")
    for tier in ("fast", "standard")
    for phase in ("decode", "prefill")
]


@st.composite
def held_steps(draw, model, measured):
    steps = []
    for seq in draw(st.lists(st.integers(0, 9), max_size=4, unique=True).map(sorted)):
        chosen = draw(st.lists(st.sampled_from(keys), min_size=1, max_size=5, unique=True).map(sorted))
        cells = [
            make_cell(
                step_seq=seq,
                **dict(zip(("account", "tenant_id", "tier", "phase"), key, strict=True)),
                **dict(zip(("seqs", "rows", "attn"), draw(cell_values), strict=True)),
            )
            for key in chosen
        ]
        duration = draw(st.integers(0, 2**40))
        if not measured:
            duration = model.step(sum(c.rows for c in cells), sum(c.attn for c in cells)) // UNITS_PER_NS
        by = draw(st.sampled_from(["a", "b", "z", "operator", None]))
        gpus, running = draw(st.integers(1, 8)), draw(st.integers(0, 40))
        steps.append((held(by, step_seq=seq, duration_ns=duration, gpus=gpus, running=running), cells))
    return steps


@tries(80)
@given(st.data(), models, st.booleans())
def test_columns_and_cells_follow_one_rule(data, model, measured):
    steps = data.draw(held_steps(model, measured))
    _, shares = split_steps(*tables(steps), model, measured)
    expected = [cell for step, cells in steps for cell in fill_cells(step, cells, model, measured)]
    assert SHARES.from_arrow(shares) == expected
    for step, _ in steps:
        own = [cell for cell in expected if cell.step_seq == step.step_seq]
        assert sum(cell.gpu_ns for cell in own) == step.duration_ns * step.gpus
        assert min(cell.gpu_ns for cell in own) >= 0
