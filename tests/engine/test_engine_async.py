"""Asynchronous scheduling: the host plans step N+2 at the end of step N, while N+1 runs."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.engine.lock_step import LockStep
from farebox.engine.pipeline import PipelinedEngine, engine_of

SETTINGS = tries(40)
MS = 1_000_000


class Checked(PipelinedEngine):
    """Recounts its books before and after every step."""

    def step(self) -> bool:
        self.check_integrity()
        stepped = super().step()
        self.check_integrity()
        return stepped


def pipelined(kit, **changes):
    return kit.config(async_scheduling=True, **changes)


def asynchronous(config):
    return replace(config, mode="continuous", async_scheduling=True, speculation=None)


@SETTINGS
@given(data=st.data())
def test_the_books_balance_whatever_happens(kit, some_workloads, some_configs, data):
    config, arrivals = asynchronous(data.draw(some_configs())), data.draw(some_workloads())
    tape = kit.serve(config, arrivals, Checked)
    assert {r.request_id for r in tape.requests} == {a.request_id for a in arrivals}
    served = [r for r in tape.requests if r.finish_reason != "rejected"]
    assert sum(s.output_tokens for s in tape.steps) == sum(r.output_tokens for r in served)
    assert sum(s.preemptions for s in tape.steps) == sum(r.preemptions for r in served)
    now = tape.runs[0].started_ns
    for step, cells in zip(tape.steps, tape.cells, strict=True):
        assert step.started_ns == now + step.idle_before_ns
        assert step.idle_before_ns >= 0
        now = step.ended_ns
        by_phase = Counter()
        for cell in cells:
            by_phase[cell.phase] += cell.rows
        assert (by_phase["prefill"], by_phase["decode"]) == (step.prefill_tokens, step.decode_tokens)
        assert sum(c.kv_block_ns for c in cells) == step.kv_blocks_used * step.duration_ns
        assert sum(c.seqs for c in cells) <= step.running <= config.seats
    for r in served:
        known = [t for t in (r.arrived_ns, r.scheduled_ns, r.first_token_ns, r.finished_ns) if t is not None]
        assert known == sorted(known)
    assert kit.serve(config, arrivals, PipelinedEngine).events == tape.events


@SETTINGS
@given(data=st.data())
def test_everybody_who_stays_gets_the_same_tokens_as_without(kit, some_workloads, some_configs, data):
    config, arrivals = asynchronous(data.draw(some_configs())), data.draw(some_workloads(aborts=False))
    ahead = kit.serve(config, arrivals, PipelinedEngine)
    behind = kit.serve(replace(config, async_scheduling=False), arrivals)
    tokens = [Counter({r.request_id: r.output_tokens for r in tape.requests}) for tape in (ahead, behind)]
    assert tokens[0] == tokens[1]
    assert sum(s.prefill_tokens - s.recomputed_tokens + s.cached_tokens for s in ahead.steps) == sum(
        r.prompt_tokens for r in ahead.requests if r.finish_reason != "rejected"
    )


def test_who_arrives_is_planned_at_the_border_and_rides_one_step_later(kit):
    config = pipelined(kit)
    alone = kit.serve(config, [kit.arrival(0, output=30)], PipelinedEngine).steps
    amid_ms = (alone[4].started_ns + MS - kit.start_ns) // MS
    tape = kit.serve(config, [kit.arrival(0, output=30), kit.arrival(1, at_ms=amid_ms)], PipelinedEngine)
    late = next(r for r in tape.requests if r.request_id == "a-1")
    steps = tape.steps
    assert late.scheduled_ns == steps[4].ended_ns
    assert [s.prefill_tokens for s in steps[5:8]] == [0, 20, 0]
    assert late.first_token_ns == steps[6].ended_ns
    assert all(s.idle_before_ns == 0 for s in steps)


def test_a_finished_sequence_keeps_its_seat_until_its_last_step_is_processed(kit):
    arrivals = [kit.arrival(0, output=3), kit.arrival(1, output=9), kit.arrival(2, output=3)]
    steps = kit.serve(pipelined(kit, max_num_seqs=2), arrivals, PipelinedEngine).steps
    rode = [(s.running, s.decode_tokens, s.prefill_tokens, s.waiting) for s in steps[:6]]
    assert rode == [(2, 0, 40, 1), (2, 2, 0, 1), (2, 2, 0, 1), (2, 1, 0, 1), (2, 1, 20, 0), (2, 2, 0, 0)]
    at_once = kit.serve(kit.config(max_num_seqs=2), arrivals).steps
    assert [s.prefill_tokens for s in at_once[:4]] == [40, 0, 0, 20]


def test_its_kv_blocks_are_on_its_tenants_bill_meanwhile(kit):
    arrivals = [kit.arrival(0, output=3), kit.arrival(1, output=9, tenant="b")]
    tape = kit.serve(pipelined(kit), arrivals, PipelinedEngine)
    step, cells = tape.steps[3], tape.cells[3]
    held = {c.tenant_id: (c.seqs, c.rows, c.kv_block_ns // step.duration_ns) for c in cells}
    assert held == {"a": (0, 0, 2), "b": (1, 1, 2)}


def test_one_that_is_preempted_with_its_last_row_on_the_way_still_ends_well(kit):
    config = pipelined(kit, kv_blocks=5, block_size=4, max_num_seqs=2)
    arrivals = [kit.arrival(0, prompt=6, output=10), kit.arrival(1, at_ms=0, prompt=5, output=4)]
    tape = kit.serve(config, arrivals, Checked)
    assert {r.request_id: (r.output_tokens, r.finish_reason) for r in tape.requests} == {
        "a-0": (10, "stop"),
        "a-1": (4, "stop"),
    }


def test_who_hangs_up_is_gone_when_what_is_on_its_way_is_processed(kit):
    steps = kit.serve(pipelined(kit), [kit.arrival(0, output=50)], PipelinedEngine).steps
    hang_up_ns = steps[5].started_ns + MS
    tape = kit.serve(pipelined(kit), [kit.arrival(0, output=50, abort_ns=hang_up_ns)], PipelinedEngine)
    (request,) = tape.requests
    assert (request.finish_reason, request.output_tokens) == ("abort", 7)
    assert request.finished_ns == tape.steps[-1].ended_ns == steps[6].ended_ns


@pytest.mark.parametrize(("gpus", "prompts"), [(1, [20, 20]), (2, [20, 0, 20])])
def test_a_cold_start_blocks_the_host_when_the_only_worker_is_its_own_process(kit, gpus, prompts):
    config = pipelined(kit, gpus=gpus, cold_start_ns=500 * MS)
    arrivals = [kit.arrival(0, output=9), kit.arrival(1, at_ms=100)]
    steps = kit.serve(config, arrivals, PipelinedEngine).steps
    warm = kit.serve(replace(config, cold_start_ns=0), arrivals, PipelinedEngine).steps
    assert steps[0].duration_ns == warm[0].duration_ns + 500 * MS
    assert [s.prefill_tokens for s in steps[: len(prompts)]] == prompts


def test_a_step_with_prompts_takes_its_extra_once_and_they_bear_it(kit):
    extra = 3_000_001 << 20
    model = replace(kit.model, prompt=extra)
    arrivals = [kit.arrival(0), kit.arrival(1, tenant="b")]
    plain, dear = (kit.serve(kit.config(step_model=m), arrivals) for m in (kit.model, model))
    assert dear.steps[0].duration_ns - plain.steps[0].duration_ns in (3_000_000, 3_000_001, 3_000_002)
    assert [c.attn - p.attn for c, p in zip(dear.cells[0], plain.cells[0], strict=True)] == [extra // 2, extra // 2]
    assert [s.duration_ns for s in dear.steps[1:]] == pytest.approx([s.duration_ns for s in plain.steps[1:]], abs=1)


def test_ranks_in_lock_step_all_take_as_long_as_the_slowest(kit):
    config, tapes = pipelined(kit), (kit.tape(), kit.tape())
    group = LockStep([PipelinedEngine(config, tape, kit.start_ns) for tape in tapes])
    arrivals = [kit.arrival(0, prompt=60, output=8), kit.arrival(1, prompt=5, output=4), kit.arrival(2, output=1)]
    for arrival in arrivals:
        group.add(arrival)
    while group.step():
        pass
    long, short = tapes
    assert [[r.request_id for r in tape.requests] for tape in tapes] == [["a-2", "a-0"], ["a-1"]]
    assert [s.duration_ns for s in short.steps] == [s.duration_ns for s in long.steps[: len(short.steps)]]
    assert [s.started_ns for s in short.steps] == [s.started_ns for s in long.steps[: len(short.steps)]]
    alone = kit.serve(config, [arrivals[1]], PipelinedEngine).steps
    assert all(together.duration_ns > apart.duration_ns for together, apart in zip(short.steps, alone, strict=True))
    group.idle_until(kit.start_ns + 10**10)
    assert group.now_ns == kit.start_ns + 10**10


def test_it_is_for_continuous_batching_only(kit):
    with pytest.raises(ValueError, match="async_scheduling needs mode continuous"):
        kit.config(mode="static", async_scheduling=True)
    assert isinstance(engine_of(pipelined(kit), kit.tape(), kit.start_ns), PipelinedEngine)
    assert not isinstance(engine_of(kit.config(), kit.tape(), kit.start_ns), PipelinedEngine)
