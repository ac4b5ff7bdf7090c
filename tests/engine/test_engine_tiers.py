"""Fast requests start at once, batch requests ride in what is left."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

SETTINGS = tries(25)


def crowd(kit, count, tier="batch", **changes):
    return [kit.arrival(n, tier=tier, tenant=tier, **{"prompt": 20, "output": 40} | changes) for n in range(count)]


def voice(kit, at_ms=100, **changes):
    return kit.arrival(9, at_ms=at_ms, tier="fast", tenant="voice", **{"prompt": 10, "output": 3} | changes)


def boarded_in(tape, request_id):
    """The step in which a request first rode."""
    (request,) = [r for r in tape.requests if r.request_id == request_id]
    return next(s for s in tape.steps if s.started_ns == request.scheduled_ns)


def next_step(tape, at_ns):
    """The first step that begins at an instant or later."""
    return next(s for s in tape.steps if s.started_ns >= at_ns)


def preemptions(tape):
    return {r.request_id: r.preemptions for r in tape.requests}


def test_with_all_seats_taken_the_newest_batch_rider_makes_way_in_the_very_step(kit):
    fast = voice(kit)
    tape = kit.serve(kit.config(max_num_seqs=2), [*crowd(kit, 2), fast], kit.checked)
    step = boarded_in(tape, "voice-9")
    assert step == next_step(tape, fast.arrived_ns)
    assert (step.running, step.waiting, step.preemptions, step.held_by) == (2, 1, 1, None)
    assert (step.prefill_tokens, step.decode_tokens) == (10, 1)
    assert preemptions(tape) == {"batch-0": 0, "batch-1": 1, "voice-9": 0}


def test_what_was_put_off_comes_back_on_nobodys_bill_when_the_seat_is_free(kit):
    tape = kit.serve(kit.config(max_num_seqs=2), [*crowd(kit, 2), voice(kit)], kit.checked)
    first = boarded_in(tape, "voice-9").step_seq
    back = tape.steps[first + 3]  # three tokens, three steps
    computed = 20 + first - 1  # its prompt in step 0, a row in each step after that
    assert (back.recomputed_tokens, back.prefill_tokens, back.decode_tokens) == (computed, computed, 2)
    (redo,) = [c for c in tape.cells[back.step_seq] if c.account == "overhead"]
    assert (redo.tenant_id, redo.tier, redo.rows) == ("batch", "batch", computed)
    assert sum(c.rows for cells in tape.cells for c in cells if c.account == "overhead") == computed
    assert {r.request_id: r.output_tokens for r in tape.requests} == {"batch-0": 40, "batch-1": 40, "voice-9": 3}


def test_with_the_kv_cache_full_as_many_as_needed_make_way(kit):
    config = kit.config(kv_blocks=10)  # nine usable blocks; 33 to 48 tokens take three
    fast = voice(kit, at_ms=115, prompt=60)
    tape = kit.serve(config, [*crowd(kit, 3, output=28), fast], kit.checked)
    before, step = next_step(tape, fast.arrived_ns - 10_000_000), boarded_in(tape, "voice-9")
    assert before.kv_blocks_used == 9
    assert step == next_step(tape, fast.arrived_ns)
    assert (step.running, step.waiting, step.preemptions, step.kv_blocks_used) == (2, 2, 2, 3 + 4)
    assert preemptions(tape) == {"batch-0": 0, "batch-1": 1, "batch-2": 1, "voice-9": 0}


def test_a_batch_prompt_that_takes_the_whole_token_budget_makes_way(kit):
    config = kit.config(max_num_batched_tokens=16)
    (long,) = crowd(kit, 1, prompt=500, output=2)
    fast = voice(kit, at_ms=20)
    tape = kit.serve(config, [long, fast], kit.checked)
    step = boarded_in(tape, "voice-9")
    assert step == next_step(tape, fast.arrived_ns)
    assert (step.running, step.prefill_tokens, step.preemptions) == (1, 10, 1)
    assert tape.steps[step.step_seq + 1].recomputed_tokens == 15  # it is back as soon as rows are left
    late = kit.serve(config, [long._replace(tier="standard"), fast])
    assert boarded_in(late, "voice-9").started_ns > step.started_ns
    assert not any(s.preemptions for s in late.steps)


@pytest.mark.parametrize("others", ["standard", "fast"])
def test_nobody_else_makes_way(kit, others):
    tape = kit.serve(kit.config(max_num_seqs=2), [*crowd(kit, 2, others), voice(kit)])
    assert boarded_in(tape, "voice-9").step_seq == 40
    assert not any(s.preemptions for s in tape.steps)


def test_a_standard_request_waits_until_a_batch_rider_gets_off(kit):
    batch = [kit.arrival(n, tier="batch", output=output) for n, output in enumerate([40, 30, 9])]
    tape = kit.serve(kit.config(max_num_seqs=2), [*batch, kit.arrival(9, at_ms=100)])
    assert boarded_in(tape, "a-9").step_seq == 30
    assert boarded_in(tape, "a-2").step_seq == 35
    assert not any(s.preemptions for s in tape.steps)


def test_nobody_is_put_off_in_vain(kit):
    """Seats are free, and what the batch rider holds would not be enough: the standard ones hold the rest."""
    config = kit.config(kv_blocks=10)
    fast = voice(kit, prompt=60)
    tape = kit.serve(config, [*crowd(kit, 2, "standard"), *crowd(kit, 1, output=20), fast])
    assert boarded_in(tape, "voice-9").started_ns > next_step(tape, fast.arrived_ns).started_ns
    assert not any(s.preemptions for s in tape.steps)


def test_a_fast_request_that_the_cap_holds_displaces_nobody(kit):
    config = kit.config(max_num_seqs=2, fast_cap=2)
    first = kit.arrival(1, tier="fast", tenant="first", output=30)
    tape = kit.serve(config, [first, *crowd(kit, 1), voice(kit)])
    assert boarded_in(tape, "voice-9").step_seq == 30
    assert not any(s.preemptions for s in tape.steps)


def test_of_a_burst_one_a_step_gets_a_seat(kit):
    fast = [kit.arrival(n, at_ms=100, tier="fast", tenant="voice", output=9) for n in range(3)]
    tape = kit.serve(kit.config(max_num_seqs=3), [*crowd(kit, 3), *fast], kit.checked)
    at = next_step(tape, fast[0].arrived_ns).step_seq
    assert [boarded_in(tape, f"voice-{n}").step_seq for n in range(3)] == [at, at + 1, at + 2]
    assert [s.preemptions for s in tape.steps[at : at + 4]] == [1, 1, 1, 0]


def test_one_with_a_better_priority_of_its_own_stays(kit):
    config = kit.config(max_num_seqs=2, scheduling_policy="priority")
    favoured, plain = (kit.arrival(n, tier="batch", output=40, priority=p) for n, p in enumerate([-5, 3]))
    tape = kit.serve(config, [plain, favoured, voice(kit)], kit.checked)
    assert preemptions(tape) == {"a-0": 0, "a-1": 1, "voice-9": 0}
    both = kit.serve(config, [plain._replace(priority=-5), favoured, voice(kit)])
    assert boarded_in(both, "voice-9").step_seq == 40


def test_out_of_blocks_batch_riders_are_put_off_first_though_they_came_first(kit):
    arrivals = [kit.arrival(1, prompt=31, output=20, tier="batch"), kit.arrival(2, at_ms=1, prompt=31, output=20)]
    tape = kit.serve(kit.config(kv_blocks=5), arrivals)
    assert preemptions(tape) == {"a-1": 1, "a-2": 0}


@SETTINGS
@given(data=st.data())
def test_among_batch_riders_a_fast_request_waits_for_nothing_but_the_step_under_way(
    kit, some_workloads, some_configs, data
):
    """And for steps that lack KV blocks for those on board: they board nobody."""
    config = replace(data.draw(some_configs()), mode="continuous", speculation=None, scheduling_policy="fcfs")
    arrivals = [a._replace(tier="batch") for a in data.draw(some_workloads())]
    chosen = data.draw(st.integers(0, len(arrivals) - 1))
    arrivals[chosen] = fast = arrivals[chosen]._replace(tier="fast", abort_ns=None)
    tape = kit.serve(config, arrivals, kit.checked)
    (request,) = [r for r in tape.requests if r.request_id == fast.request_id]
    if request.finish_reason == "rejected":
        return
    waited = [s for s in tape.steps if fast.arrived_ns <= s.started_ns < request.scheduled_ns]
    assert all(s.preemptions for s in waited)
