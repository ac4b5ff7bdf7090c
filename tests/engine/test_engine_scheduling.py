"""Who rides when: each mode, the fast tier, preemption and hang-ups, on cases small enough to follow by hand."""

import pytest

MS = 1_000_000


def running(tape):
    return [s.running for s in tape.steps]


def test_a_prompt_is_computed_in_chunks_and_its_last_chunk_samples_the_first_token(kit):
    tape = kit.serve(kit.config(max_num_batched_tokens=16), [kit.arrival(1, prompt=40, output=3)])
    assert [(s.prefill_tokens, s.decode_tokens, s.output_tokens) for s in tape.steps] == [
        (16, 0, 0),
        (16, 0, 0),
        (8, 0, 1),
        (0, 1, 1),
        (0, 1, 1),
    ]
    (request,) = tape.requests
    assert request.first_token_ns == tape.steps[2].ended_ns
    assert request.finished_ns == tape.steps[4].ended_ns
    assert request.gpu_ns == pytest.approx(sum(s.duration_ns for s in tape.steps), abs=1)


def test_decoders_ride_on_while_a_newcomer_prefills_with_what_is_left_of_the_budget(kit):
    config = kit.config(max_num_batched_tokens=16)
    tape = kit.serve(config, [kit.arrival(1, prompt=16, output=9), kit.arrival(2, at_ms=1, prompt=30, output=1)])
    assert [(s.prefill_tokens, s.decode_tokens) for s in tape.steps[:4]] == [(16, 0), (15, 1), (15, 1), (0, 1)]


@pytest.mark.parametrize(
    "max_tokens, reason, output", [(None, "stop", 5), (9, "stop", 5), (5, "length", 5), (2, "length", 2)]
)
def test_finish_reasons(kit, max_tokens, reason, output):
    (request,) = kit.serve(kit.config(), [kit.arrival(1, output=5, max_tokens=max_tokens)]).requests
    assert (request.finish_reason, request.output_tokens) == (reason, output)


def test_no_output_means_done_with_the_prompt(kit):
    tape = kit.serve(kit.config(), [kit.arrival(1, prompt=5, output=0)])
    (request,) = tape.requests
    assert (request.first_token_ns, request.finished_ns) == (None, tape.steps[0].ended_ns)
    assert tape.steps[0].output_tokens == 0


def test_what_can_never_fit_is_rejected_on_arrival_and_disturbs_nobody(kit):
    config = kit.config(kv_blocks=4)  # three usable blocks: 48 tokens
    tape = kit.serve(config, [kit.arrival(1, prompt=40, output=8), kit.arrival(2, prompt=40, output=9)])
    rejected, served = tape.requests
    assert (rejected.request_id, rejected.finish_reason, rejected.scheduled_ns) == ("a-2", "rejected", None)
    assert (served.finish_reason, served.preemptions) == ("stop", 0)


def test_out_of_blocks_the_newest_is_put_off_and_recomputes_on_nobodys_bill(kit):
    config = kit.config(kv_blocks=5, max_num_batched_tokens=64)  # four usable blocks
    old, new = kit.arrival(1, prompt=31, output=20), kit.arrival(2, prompt=31, output=20, tenant="b")
    tape = kit.serve(config, [old, new])
    (put_off,) = [s for s in tape.steps if s.preemptions]
    assert put_off.step_seq == 2 and (put_off.running, put_off.waiting) == (1, 1)
    first, second = tape.requests
    assert (first.request_id, first.preemptions, second.request_id, second.preemptions) == ("a-1", 0, "b-2", 1)
    redo = [c for cells in tape.cells for c in cells if c.account == "overhead"]
    assert [(c.tenant_id, c.phase, c.seqs, c.rows, c.output_tokens) for c in redo] == [("b", "prefill", 1, 32, 0)]
    resumed = tape.steps[redo[0].step_seq]
    assert (resumed.recomputed_tokens, resumed.prefill_tokens, resumed.decode_tokens) == (32, 32, 1)
    new_row = [c for c in tape.cells[resumed.step_seq] if c.account == "tenant"]
    assert [(c.phase, c.seqs, c.rows, c.output_tokens) for c in new_row] == [("decode", 0, 1, 1)]
    assert redo[0].attn == kit.model.attention(33, 0) * 32 // 33
    assert redo[0].attn + new_row[0].attn == kit.model.attention(33, 0)


def test_static_waits_for_company_and_boards_nobody_until_all_got_off(kit):
    config = kit.config(mode="static", max_num_seqs=3, batch_wait_ms=50)
    arrivals = [
        kit.arrival(1, output=2),
        kit.arrival(2, at_ms=10, output=9),
        kit.arrival(3, at_ms=60, output=4),
        kit.arrival(4, at_ms=60, output=4),
    ]
    tape = kit.serve(config, arrivals)
    assert tape.steps[0].started_ns == kit.start_ns + 50 * MS
    assert running(tape) == [2, 2] + [1] * 7 + [2] * 4
    assert [s.waiting for s in tape.steps] == [0, 0, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0]
    both_waited_long_enough = max(tape.steps[8].ended_ns, kit.start_ns + 110 * MS)
    assert tape.steps[9].started_ns == both_waited_long_enough


def test_static_leaves_at_once_when_full(kit):
    config = kit.config(mode="static", max_num_seqs=2)
    tape = kit.serve(config, [kit.arrival(1), kit.arrival(2, at_ms=3), kit.arrival(3, at_ms=4)])
    assert tape.steps[0].started_ns == kit.start_ns + 3 * MS


def test_static_takes_only_as_many_as_the_cache_can_carry_to_their_end(kit):
    config = kit.config(mode="static", kv_blocks=6)  # five usable blocks, two per request
    tape = kit.serve(config, [kit.arrival(n, prompt=20, output=12) for n in range(5)])
    assert [tape.steps[0].running, tape.steps[0].waiting] == [2, 3]
    assert not any(s.preemptions for s in tape.steps)


def test_without_batching_everybody_rides_alone_in_order(kit):
    tape = kit.serve(kit.config(mode="none"), [kit.arrival(n, output=3) for n in (1, 2, 3)])
    assert running(tape) == [1] * 9
    assert [s.waiting for s in tape.steps] == [2] * 3 + [1] * 3 + [0] * 3
    assert [r.request_id for r in tape.requests] == ["a-1", "a-2", "a-3"]


def test_tiers_queue_fast_before_standard_before_batch(kit):
    tiers = ["standard", "batch", "standard", "fast"]
    arrivals = [kit.arrival(n, tier=tier, tenant=tier) for n, tier in enumerate(tiers)]
    tape = kit.serve(kit.config(max_num_seqs=1), arrivals)
    assert [r.request_id for r in tape.requests] == ["fast-3", "standard-0", "standard-2", "batch-1"]


def test_a_fast_rider_holds_the_others_off_at_its_cap_and_the_step_says_so(kit):
    config = kit.config(fast_cap=2)
    arrivals = [kit.arrival(1, output=9, tier="fast", tenant="voice")]
    arrivals += [kit.arrival(n, output=3) for n in (2, 3, 4)]
    tape = kit.serve(config, arrivals)
    assert running(tape)[:9] == [2] * 9
    assert [s.held_by for s in tape.steps[:9]] == ["voice"] * 6 + [None] * 3
    assert [s.waiting for s in tape.steps[:9]] == [2, 2, 2, 1, 1, 1, 0, 0, 0]


def test_a_cap_holds_nobody_when_there_is_no_room_anyway(kit):
    config = kit.config(fast_cap=1, kv_blocks=4)
    arrivals = [kit.arrival(1, prompt=20, output=3, tier="fast", tenant="voice"), kit.arrival(2, prompt=40, output=1)]
    assert {s.held_by for s in kit.serve(config, arrivals).steps} == {None}


def test_a_client_that_hangs_up_frees_its_seat_for_the_next_step_and_keeps_what_it_cost(kit):
    config = kit.config(max_num_seqs=1)
    impatient = kit.arrival(1, output=50, abort_ns=kit.start_ns + 20 * MS)
    tape = kit.serve(config, [impatient, kit.arrival(2, output=1)])
    gone, served = tape.requests
    last = next(s for s in tape.steps if s.ended_ns >= kit.start_ns + 20 * MS)
    assert (gone.finish_reason, gone.finished_ns, gone.output_tokens) == ("abort", last.ended_ns, last.step_seq + 1)
    assert gone.gpu_ns == pytest.approx(last.ended_ns - kit.start_ns, abs=len(tape.steps))
    assert served.scheduled_ns == last.ended_ns


def test_who_hangs_up_while_waiting_never_rode(kit):
    config = kit.config(max_num_seqs=1)
    tape = kit.serve(config, [kit.arrival(1, output=9), kit.arrival(2, output=9, abort_ns=kit.start_ns + 1)])
    gone = tape.requests[0]
    assert (gone.request_id, gone.scheduled_ns, gone.output_tokens, gone.gpu_ns) == ("a-2", None, 0, 0)


def test_aborting_by_hand_and_aborting_nobody(kit):
    tape = kit.tape()
    engine = kit.checked(kit.config(), tape, kit.start_ns)
    engine.add(kit.arrival(1, output=9))
    assert engine.step()
    engine.abort("a-1")
    engine.abort("a-1")
    engine.abort("nobody")
    assert not engine.step()
    assert [r.finish_reason for r in tape.requests] == ["abort"]


def test_the_engine_refuses_what_makes_no_sense(kit):
    engine = kit.checked(kit.config(), kit.tape(), kit.start_ns)
    engine.add(kit.arrival(1))
    for arrival in (kit.arrival(1), kit.arrival(2, at_ms=1), kit.arrival(3, prompt=0), kit.arrival(4, output=-1)):
        with pytest.raises(ValueError, match=arrival.request_id):
            engine.add(arrival)
    engine.step()
    with pytest.raises(ValueError, match="not idle"):
        engine.idle_until(kit.start_ns + 10**12)


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"mode": "dynamic"}, "mode 'dynamic' is not one of continuous, static, none"),
        ({"max_num_batched_tokens": 0}, "max_num_batched_tokens is 0; it must be at least 1"),
        ({"kv_blocks": 1}, "kv_blocks is 1; it must be at least 2"),
        ({"fast_cap": 0}, "fast_cap is 0"),
        ({"fast_cap": 4, "mode": "static"}, "fast_cap needs mode continuous"),
    ],
)
def test_a_configuration_that_cannot_run_says_why(kit, changes, words):
    with pytest.raises(ValueError, match=words):
        kit.config(**changes)


def test_the_books_notice_what_does_not_balance(kit):
    from farebox.engine.errors import IntegrityError

    engine = kit.checked(kit.config(), kit.tape(), kit.start_ns)
    engine.add(kit.arrival(1, output=9))
    engine.step()
    engine._pool.allocate(1)
    with pytest.raises(IntegrityError, match="KV blocks in use"):
        engine.check_integrity()


@pytest.mark.parametrize("mode", ["continuous", "static", "none"])
@pytest.mark.parametrize("steps", range(7))
def test_a_client_may_hang_up_at_any_moment(kit, mode, steps):
    """Before its first step, between chunks of its prompt, with its first token, while it decodes."""
    tape = kit.tape()
    config = kit.config(mode=mode, batch_wait_ms=0, max_num_batched_tokens=16, enable_prefix_caching=True)
    engine = kit.checked(config, tape, kit.start_ns)
    engine.add(kit.arrival(1, prompt=40, output=9, prefix_ids=(1,)))
    engine.add(kit.arrival(2, prompt=40, output=9, prefix_ids=(1,)))
    for _ in range(steps):
        assert engine.step()
    engine.abort("a-1")
    engine.check_integrity()
    gone = tape.requests[0]
    assert (gone.finish_reason, gone.finished_ns, gone.output_tokens) == ("abort", engine.now_ns, max(0, steps - 2))
    while engine.step():
        pass
    assert [(r.request_id, r.finish_reason, r.output_tokens) for r in tape.requests[1:]] == [("a-2", "stop", 9)]
    assert engine._pool.used == 0


def test_whoever_hangs_up_in_its_last_step_got_everything(kit):
    config = kit.config()
    (served,) = kit.serve(config, [kit.arrival(1, output=3)]).requests
    during = kit.arrival(1, output=3, abort_ns=served.finished_ns - 1)
    assert [r.finish_reason for r in kit.serve(config, [during]).requests] == ["stop"]
