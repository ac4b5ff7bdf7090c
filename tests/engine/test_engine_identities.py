"""What a bill can rely on: tokens, time and cells add up, whatever happens to the requests."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from properties import tries

SETTINGS = tries(40)


@SETTINGS
@given(data=st.data())
def test_tokens_of_steps_are_the_tokens_of_requests(kit, some_workloads, some_configs, data):
    config, arrivals = data.draw(some_configs()), data.draw(some_workloads(aborts=False))
    tape = kit.serve(config, arrivals)
    served = [r for r in tape.requests if r.finish_reason != "rejected"]
    first_time = sum(s.prefill_tokens - s.recomputed_tokens + s.cached_tokens for s in tape.steps)
    assert first_time == sum(r.prompt_tokens for r in served)
    assert sum(s.output_tokens for s in tape.steps) == sum(r.output_tokens for r in served)
    assert {r.request_id for r in tape.requests} == {a.request_id for a in arrivals}
    assert sum(r.preemptions for r in served) == sum(s.preemptions for s in tape.steps)


@SETTINGS
@given(data=st.data())
def test_time_telescopes_and_cells_sum_to_their_step(kit, some_workloads, some_configs, data):
    config, arrivals = data.draw(some_configs()), data.draw(some_workloads())
    tape = kit.serve(config, arrivals)
    now = tape.runs[0].started_ns
    for number, (step, cells) in enumerate(zip(tape.steps, tape.cells, strict=True)):
        assert step.step_seq == number
        assert step.started_ns == now + step.idle_before_ns
        now = step.ended_ns
        assert {(c.step_seq, c.started_ns, c.gpu_ns) for c in cells} == {(number, step.started_ns, None)}
        keys = [(c.account, c.tenant_id, c.tier, c.phase) for c in cells]
        assert keys == sorted(set(keys))
        by_phase = Counter()
        for cell in cells:
            by_phase[cell.phase] += cell.rows
        assert (by_phase["prefill"], by_phase["decode"]) == (step.prefill_tokens, step.decode_tokens)
        assert sum(c.output_tokens for c in cells) == step.output_tokens
        assert sum(c.rows for c in cells if c.account == "overhead") == step.recomputed_tokens
        assert sum(c.kv_block_ns for c in cells) == step.kv_blocks_used * step.duration_ns
        assert sum(c.seqs for c in cells) <= step.running <= config.max_num_seqs
        assert sum(c.rows for c in cells) <= config.max_num_batched_tokens
        assert step.kv_blocks_used <= step.kv_blocks_total == config.kv_blocks - 1
    run = tape.runs[-1]
    assert run.ended_ns == run.heartbeat_ns == max([now] + [r.finished_ns for r in tape.requests])


@SETTINGS
@given(data=st.data())
def test_a_request_lives_in_order_and_twice_alike(kit, some_workloads, some_configs, data):
    config, arrivals = data.draw(some_configs()), data.draw(some_workloads())
    tape = kit.serve(config, arrivals)
    for r in tape.requests:
        known = [t for t in (r.arrived_ns, r.scheduled_ns, r.first_token_ns, r.finished_ns) if t is not None]
        assert known == sorted(known)
        assert (r.first_token_ns is None) == (r.output_tokens == 0)
        assert r.finish_reason != "rejected" or r.scheduled_ns is None
    assert kit.serve(config, arrivals).events == tape.events


def test_a_recorded_trace_comes_out_as_it_went_in(kit, shared):
    from farebox.engine.workloads import azure

    arrivals = list(azure.read(shared / "data" / "traces" / "AzureLLMInferenceTrace_code.csv", "code"))
    config = kit.config(max_num_seqs=256, max_num_batched_tokens=8192, kv_blocks=26_000)
    tape = kit.serve(config, arrivals)
    assert len(tape.requests) == 8_819
    assert sum(r.prompt_tokens for r in tape.requests) == 18_059_974 == sum(s.prefill_tokens for s in tape.steps)
    assert sum(r.output_tokens for r in tape.requests) == 245_896 == sum(s.output_tokens for s in tape.steps)
    wall_ns = tape.runs[-1].ended_ns - tape.runs[0].started_ns
    assert sum(s.duration_ns + s.idle_before_ns for s in tape.steps) == wall_ns
    busy_ns = sum(s.duration_ns for s in tape.steps)
    assert 0 <= busy_ns - sum(r.gpu_ns for r in tape.requests) < len(tape.steps) + len(tape.requests)
