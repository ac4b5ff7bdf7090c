"""Prompts that begin alike: what is found again, who holds it, and what is evicted first."""

import pytest

ENDLESS = 10_000_000


def cached(config, **changes):
    return config(**({"enable_prefix_caching": True, "prefix_block_tokens": 32, "kv_blocks": 200} | changes))


def test_the_second_prompt_computes_only_what_differs(kit):
    first = kit.arrival(1, prompt=100, output=2, prefix_ids=(1, 2, 3, 4))
    second = kit.arrival(2, at_ms=500, prompt=100, output=2, prefix_ids=(1, 2, 5, 6))
    tape = kit.serve(cached(kit.config, max_num_batched_tokens=128), [first, second])
    assert [(s.prefill_tokens, s.cached_tokens) for s in tape.steps] == [(100, 0), (0, 0), (36, 64), (0, 0)]
    assert [r.cached_tokens for r in tape.requests] == [0, 64]
    assert [c.cached_tokens for c in tape.cells[2]] == [64]


def test_the_last_token_is_always_computed(kit):
    arrivals = [kit.arrival(n, at_ms=n * 500, prompt=64, output=1, prefix_ids=(1, 2)) for n in (0, 1)]
    tape = kit.serve(cached(kit.config), arrivals)
    assert [(s.prefill_tokens, s.cached_tokens) for s in tape.steps] == [(64, 0), (16, 48)]


def test_two_who_board_together_share_at_once_and_a_shared_block_counts_once(kit):
    arrivals = [kit.arrival(n, tenant=t, prompt=70, output=3, prefix_ids=(1, 2, n)) for n, t in ((3, "a"), (4, "b"))]
    tape = kit.serve(cached(kit.config, max_num_batched_tokens=128), arrivals)
    step, (a, b) = tape.steps[1], tape.cells[1]
    assert (tape.steps[0].prefill_tokens, tape.steps[0].cached_tokens) == (76, 64)
    assert step.kv_blocks_used == 4 + 2  # 64 tokens shared, and the tail of each
    assert (a.kv_block_ns, b.kv_block_ns) == (3 * step.duration_ns, 3 * step.duration_ns)


def test_of_three_sharers_the_first_has_the_rest(kit):
    arrivals = [kit.arrival(n, tenant=t, prompt=17, output=9, prefix_ids=(1,)) for n, t in enumerate("abc")]
    tape = kit.serve(cached(kit.config, prefix_block_tokens=16), arrivals)
    step, cells = tape.steps[1], tape.cells[1]
    part = 2**20 // 3
    parts = [2**20 + 2**20 - 2 * part, 2**20 + part, 2**20 + part]
    upto = [sum(parts[: n + 1]) * step.duration_ns >> 20 for n in range(3)]
    assert [c.kv_block_ns for c in cells] == [upto[0], upto[1] - upto[0], upto[2] - upto[1]]
    assert sum(c.kv_block_ns for c in cells) == 4 * step.duration_ns == step.kv_blocks_used * step.duration_ns


def test_the_least_recently_used_goes_first_and_of_it_the_tail(kit):
    config = cached(kit.config, kv_blocks=13, max_num_batched_tokens=192, prefix_block_tokens=64)  # 12 usable
    a, b, c = (kit.arrival(n, at_ms=n * 500, prompt=80, output=1, prefix_ids=(n, 10 + n)) for n in (0, 1, 2))
    again_a = kit.arrival(3, at_ms=2_000, prompt=80, output=1, prefix_ids=(0, 10))
    again_c = kit.arrival(4, at_ms=2_500, prompt=80, output=1, prefix_ids=(2, 12))
    tape = kit.serve(config, [a, b, c, again_a, again_c])
    # c takes two free blocks and the last three of a; a finds its first two again
    assert [r.cached_tokens for r in tape.requests] == [0, 0, 0, 32, 64]


def test_hits_that_nobody_holds_count_against_the_free_blocks(kit):
    config = cached(kit.config, kv_blocks=9, max_num_batched_tokens=128)  # 8 usable
    first = kit.arrival(1, prompt=64, output=1, prefix_ids=(1, 2))
    rider = kit.arrival(2, at_ms=500, prompt=60, output=20, prefix_ids=(7, 8))
    late = kit.arrival(3, at_ms=510, prompt=80, output=1, prefix_ids=(1, 2, 3))
    tape = kit.serve(config, [first, rider, late])
    _, second, third = tape.requests  # four free blocks, all of them hits, are not enough for five
    assert third.scheduled_ns == second.finished_ns
    assert third.cached_tokens == 48  # the rider's fifth block took the tail of what was cached


def test_a_resumed_requests_own_blocks_are_found_but_are_not_cached_tokens(kit):
    config = cached(kit.config, kv_blocks=5, max_num_batched_tokens=64, prefix_block_tokens=16)
    old = kit.arrival(1, prompt=31, output=20, prefix_ids=(1,))
    new = kit.arrival(2, prompt=31, output=20, tenant="b", prefix_ids=(2,))
    tape = kit.serve(config, [old, new])
    assert [r.preemptions for r in tape.requests] == [0, 1]
    assert sum(s.cached_tokens for s in tape.steps) == 0
    assert sum(s.recomputed_tokens for s in tape.steps) == 32  # all of it was taken by the other


def test_ids_need_whole_blocks(kit):
    with pytest.raises(ValueError, match="prefix_block_tokens is 24; it must be a multiple of block_size 16"):
        cached(kit.config, prefix_block_tokens=24)


def test_two_traces_ids_are_told_apart(kit):
    from farebox.engine.workloads.merge import merge

    one, two = ([kit.arrival(n, prefix_ids=(0, 1))] for n in (1, 2))
    ids = [a.prefix_ids for a in merge(one, two)]
    assert ids[0] == (0, 1) and not set(ids[0]) & set(ids[1])


def test_a_recorded_trace_hits_as_often_as_an_endless_cache_can(kit, shared):
    from farebox.engine.workloads import mooncake

    arrivals = list(mooncake.read(shared / "data" / "traces" / "mooncake_conversation_trace.jsonl"))[:3_000]
    seen, possible = set(), 0
    for arrival in arrivals:
        known = next((n for n, i in enumerate(arrival.prefix_ids) if i not in seen), len(arrival.prefix_ids))
        possible += min(known * 32, (arrival.prompt_tokens - 1) // 16) * 16
        seen.update(arrival.prefix_ids)
    alone = [a._replace(output_tokens=1) for a in arrivals]
    config = kit.config(
        mode="none", enable_prefix_caching=True, kv_blocks=ENDLESS, max_num_batched_tokens=200_000, max_num_seqs=1
    )
    tape = kit.serve(config, alone)
    assert sum(r.cached_tokens for r in tape.requests) == possible
    assert sum(s.prefill_tokens + s.cached_tokens for s in tape.steps) == sum(a.prompt_tokens for a in arrivals)
