"""Speculative decoding: what is drafted, kept and thrown away, and what it costs."""

from statistics import fmean

import pytest

from farebox.engine.speculation import Speculation


def test_if_all_drafts_are_right_a_step_yields_all_of_them_and_one_more(kit):
    config = kit.config(speculation=Speculation(3, 1_000_000))
    tape = kit.serve(config, [kit.arrival(1, prompt=20, output=9)], kit.checked)
    assert [(s.prefill_tokens, s.decode_tokens, s.output_tokens, s.rejected_tokens) for s in tape.steps] == [
        (20, 0, 1, 0),
        (0, 4, 4, 0),
        (0, 4, 4, 0),
    ]


def test_if_no_draft_is_right_a_step_yields_one_token_and_costs_all_rows(kit):
    config = kit.config(speculation=Speculation(3, 0))
    tape = kit.serve(config, [kit.arrival(1, prompt=20, output=4)], kit.checked)
    assert [(s.decode_tokens, s.output_tokens, s.rejected_tokens) for s in tape.steps[1:]] == [(4, 1, 3)] * 3
    step = tape.steps[1]
    units = kit.model.step(4, kit.model.attention(4, 20))
    assert step.duration_ns == pytest.approx(units / 2**20, abs=1)
    assert step.kv_blocks_used == 2
    assert [(c.phase, c.seqs, c.rows, c.output_tokens) for c in tape.cells[1]] == [("decode", 1, 4, 1)]


def test_what_is_right_but_not_wanted_is_thrown_away(kit):
    config = kit.config(speculation=Speculation(5, 1_000_000))
    tape = kit.serve(config, [kit.arrival(1, output=100, max_tokens=4)])
    assert [(s.decode_tokens, s.output_tokens, s.rejected_tokens) for s in tape.steps[1:]] == [(6, 3, 3)]
    assert [(r.output_tokens, r.finish_reason) for r in tape.requests] == [(4, "length")]


def test_drafts_take_what_the_budget_leaves_and_everybody_has_a_row(kit):
    config = kit.config(speculation=Speculation(4, 0), max_num_seqs=3, max_num_batched_tokens=9)
    arrivals = [kit.arrival(n, prompt=1, output=4, tenant=t) for n, t in enumerate("abc")]
    tape = kit.serve(config, arrivals, kit.checked)
    assert [[c.rows for c in cells] for cells in tape.cells[1:]] == [[5, 3, 1]] * 3


def test_the_draft_models_passes_are_part_of_the_step(kit):
    free = kit.config(speculation=Speculation(3, 0))
    paid = kit.config(speculation=Speculation(3, 0, draft=kit.draft))
    arrivals = [kit.arrival(n, prompt=20, output=3, tenant=t) for n, t in enumerate("ab")]
    without, with_draft = (kit.serve(config, arrivals).steps[1] for config in (free, paid))
    draft = kit.draft
    units = draft.step(8, 2 * draft.attention(4, 20))  # the first pass reads all rows
    units += sum(draft.step(2, 2 * draft.attention(1, 24 + number)) for number in range(2))
    assert with_draft.duration_ns - without.duration_ns == pytest.approx(units / 2**20, abs=2)


def test_the_rate_is_met_and_depends_on_seed_and_request_alone():
    kept = {}
    for seed in (0, 1):
        spec = Speculation(4, 700_000, seed)
        keys = [spec.key(f"request-{n}") for n in range(200)]
        kept[seed] = [spec.accepted(key, position, 4) for key in keys for position in range(0, 1_000, 5)]
        assert kept[seed] == [spec.accepted(key, position, 4) for key in keys for position in range(0, 1_000, 5)]
    assert kept[0] != kept[1]
    assert fmean(kept[0]) == pytest.approx(0.7 + 0.7**2 + 0.7**3 + 0.7**4, rel=0.02)


def test_a_request_gets_the_same_answers_whoever_rides_along(kit):
    config = kit.config(speculation=Speculation(4, 600_000))
    alone = kit.serve(config, [kit.arrival(1, output=60)])
    crowd = kit.serve(config, [kit.arrival(n, output=60) for n in range(1, 6)])
    cells = [step.output_tokens for step in alone.steps]
    first = next(r for r in crowd.requests if r.request_id == "a-1")
    assert first.finished_ns == crowd.steps[len(cells) - 1].ended_ns


@pytest.mark.parametrize(
    "speculation, words",
    [(Speculation(0, 5), "at least 1 drafted token"), (Speculation(2, 1_000_001), "between 0 and 1")],
)
def test_speculation_that_makes_no_sense_is_refused(kit, speculation, words):
    with pytest.raises(ValueError, match=words):
        kit.config(speculation=speculation)
