"""Who is served first and who is put off when requests have priorities."""


def test_lower_priorities_board_first_and_arrival_breaks_ties(kit):
    arrivals = [kit.arrival(n, priority=p) for n, p in enumerate([5, 1, 5, None, -2])]
    tape = kit.serve(kit.config(scheduling_policy="priority", max_num_seqs=1), arrivals)
    assert [r.request_id for r in tape.requests] == ["a-4", "a-3", "a-1", "a-0", "a-2"]


def test_without_a_priority_the_tier_decides(kit):
    arrivals = [kit.arrival(n, tier=tier) for n, tier in enumerate(["batch", "standard", "fast"])]
    tape = kit.serve(kit.config(scheduling_policy="priority", max_num_seqs=1), arrivals)
    assert [r.tier for r in tape.requests] == ["fast", "standard", "batch"]


def test_fcfs_minds_no_priority(kit):
    arrivals = [kit.arrival(n, priority=-n) for n in range(3)]
    tape = kit.serve(kit.config(max_num_seqs=1), arrivals)
    assert [r.request_id for r in tape.requests] == ["a-0", "a-1", "a-2"]


def test_out_of_blocks_the_worst_rank_is_put_off_though_it_came_first(kit):
    arrivals = [kit.arrival(n, at_ms=n, prompt=31, output=20, priority=-n) for n in (1, 2)]
    newest = kit.serve(kit.config(kv_blocks=5), arrivals)
    worst = kit.serve(kit.config(scheduling_policy="priority", kv_blocks=5), arrivals)
    assert {r.request_id: r.preemptions for r in newest.requests} == {"a-1": 0, "a-2": 1}
    assert {r.request_id: r.preemptions for r in worst.requests} == {"a-1": 1, "a-2": 0}


def test_a_step_that_puts_somebody_off_boards_nobody(kit):
    config = kit.config(scheduling_policy="priority", kv_blocks=5)
    arrivals = [kit.arrival(1, prompt=31, output=20, tier="batch"), kit.arrival(2, at_ms=1, prompt=31, output=20)]
    arrivals.append(kit.arrival(3, at_ms=20, prompt=1, output=3, tier="batch"))
    tape = kit.serve(config, arrivals)
    (put_off,) = [s for s in tape.steps if s.preemptions]
    assert (put_off.running, put_off.prefill_seqs, put_off.held_by) == (1, 0, None)
