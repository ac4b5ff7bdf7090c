"""The feed tells exact figures, whatever the pace at which a store grows."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.tui.feed import Feed


def two_tenants(make, store):
    """Ten seconds: load 1 s, idle 1 s, a step of 4 s for two tenants, idle until the heartbeat."""
    s = make.S
    store.run_list = [make.run(load_ns=s, heartbeat_ns=make.START + 10 * s)]
    step = make.step(
        0, make.START + 2 * s, 4 * s, idle_before_ns=s, running=4, waiting=2, prefill_ns=s, decode_ns=3 * s
    )
    store.step_list = [step]
    store.share_list = [
        make.share(step, "acme", gpu_ns=3 * s, seqs=3, rows=3, output_tokens=3),
        make.share(step, "zeta", phase="prefill", gpu_ns=s, rows=300, cached_tokens=100, output_tokens=0),
    ]
    return step


def test_every_gpu_nanosecond_of_the_window_has_an_owner(make, store):
    two_tenants(make, store)
    snapshot = make.feed(store).poll()
    accounts = snapshot.accounts
    assert snapshot.wall_ns == 10 * make.S
    assert (accounts.riders, accounts.idle, accounts.overhead) == (4 * make.S, 5 * make.S, make.S)
    assert (accounts.underfill, accounts.unobserved) == (0, 0)
    assert accounts.total == 10 * make.S
    assert snapshot.no_step == 0.5


def test_tenants_are_listed_by_gpu_time_with_their_tokens(make, store):
    two_tenants(make, store)
    acme, zeta = make.feed(store).poll().tenants
    assert (acme.tenant_id, acme.gpu_ns, acme.prompt_tokens, acme.output_tokens) == ("acme", 3 * make.S, 0, 3)
    assert (zeta.tenant_id, zeta.prompt_tokens, zeta.cached_tokens, zeta.output_tokens) == ("zeta", 400, 100, 0)


def test_seats_and_phases_are_weighted_by_time(make, store):
    two_tenants(make, store)
    snapshot = make.feed(store).poll()
    assert snapshot.busy_ns == 4 * make.S
    assert (snapshot.prefill_ns, snapshot.decode_ns) == (make.S, 3 * make.S)
    assert snapshot.seat_ns == 16 * make.S
    assert snapshot.empty_seats == 1 - 4 / 64
    assert [(b.label, b.busy_ns) for b in snapshot.bins if b.busy_ns] == [("2–4", 4 * make.S)]


def test_money_of_the_hour_sums_to_the_rate(make, store):
    two_tenants(make, store)
    store.rate_list = [make.rate("4.29")]
    snapshot = make.feed(store).poll()
    money = snapshot.money
    assert (money.total, money.riders, money.idle, money.overhead) == (4_290_000, 1_716_000, 2_145_000, 429_000)
    assert [t.hourly for t in snapshot.tenants] == [1_287_000, 429_000]
    assert sum(t.hourly for t in snapshot.tenants) == money.riders


def test_cost_of_1000_tokens_busy_only_and_with_idle(make, store):
    two_tenants(make, store)
    store.rate_list = [make.rate("3.60")]
    acme, zeta = make.feed(store).poll().tenants
    assert acme.per_1k == Decimal("0.003") * 1000 / 3
    assert acme.per_1k_full == acme.per_1k * Decimal("2.25")
    assert zeta.per_1k == Decimal("0.001") * 1000 / 400
    assert zeta.per_1k_out is None


def test_without_a_rate_the_cost_is_in_gpu_milliseconds_and_says_why(make, store):
    two_tenants(make, store)
    store.rate_list = [make.rate(gpu_type="L4")]
    snapshot = make.feed(store).poll()
    assert (snapshot.money, snapshot.unit) == (None, "GPU-ms")
    assert snapshot.money_reason == "no rate for H100"
    assert snapshot.tenants[1].per_1k == Decimal(2500)
    assert snapshot.tenants[0].hourly is None


def test_rates_that_contradict_each_other_are_told_and_not_used(make, store):
    two_tenants(make, store)
    store.rate_list = [make.rate("1"), make.rate("2")._replace(from_ns=60_000_000_000)]
    snapshot = make.feed(store).poll()
    assert (snapshot.money, snapshot.unit) == (None, "GPU-ms")
    assert snapshot.money_reason.startswith("two rates for any GPU")


def test_two_gpus_cost_twice(make, store):
    step = two_tenants(make, store)
    store.run_list = [store.run_list[0]._replace(gpus=2)]
    store.step_list = [step._replace(gpus=2)]
    store.share_list = [cell._replace(gpu_ns=2 * cell.gpu_ns) for cell in store.share_list]
    store.rate_list = [make.rate("4.29")]
    snapshot = make.feed(store).poll()
    assert snapshot.accounts.total == 20 * make.S
    assert snapshot.accounts.unobserved == 0
    assert snapshot.money.total == 8_580_000


def test_a_hole_in_the_steps_is_unobserved_except_for_the_idle_that_was_measured(make, store):
    s = make.S
    store.run_list = [make.run(heartbeat_ns=make.START + 10 * s)]
    first = make.step(0, make.START, s)
    late = make.step(7, make.START + 8 * s, 2 * s, idle_before_ns=3 * s)
    store.step_list = [first, late]
    store.share_list = [make.share(first), make.share(late)]
    accounts = make.feed(store).poll().accounts
    assert (accounts.riders, accounts.idle, accounts.unobserved) == (3 * s, 3 * s, 4 * s)


def test_steps_that_overlap_are_reported_and_not_priced(make, store):
    s = make.S
    store.run_list = [make.run(heartbeat_ns=make.START + 3 * s)]
    store.rate_list = [make.rate()]
    steps = [make.step(0, make.START, 2 * s), make.step(1, make.START + s, 2 * s)]
    store.step_list, store.share_list = steps, [make.share(step) for step in steps]
    snapshot = make.feed(store).poll()
    assert snapshot.accounts.unobserved == -s
    assert (snapshot.money, snapshot.money_reason) == (None, "steps overlap: the window does not add up")


def test_loading_is_overhead_while_it_lasts_and_when_it_is_told_late(make, store):
    s, ms = make.S, make.MS
    store.run_list = [make.run(load_ns=8 * s, heartbeat_ns=make.START + 1500 * ms)]
    feed = make.feed(store)
    accounts = feed.poll().accounts
    assert (accounts.overhead, accounts.idle, accounts.unobserved) == (1500 * ms, 0, 0)
    store.run_list = [make.run(load_ns=2500 * ms, heartbeat_ns=make.START + 4 * s)]
    step = make.step(0, make.START + 3 * s, s, idle_before_ns=500 * ms)
    store.step_list, store.share_list = [step], [make.share(step)]
    accounts = feed.poll().accounts
    assert (accounts.overhead, accounts.idle, accounts.riders, accounts.unobserved) == (2500 * ms, 500 * ms, s, 0)


def test_only_the_last_minute_counts(make, store):
    s = make.S
    store.run_list = [make.run(heartbeat_ns=make.START + 100 * s + s // 2)]
    store.step_list = [make.step(i, make.START + i * s, s // 2, idle_before_ns=s // 2 if i else 0) for i in range(100)]
    store.share_list = [make.share(step) for step in store.step_list]
    snapshot = make.feed(store).poll()
    assert snapshot.wall_ns == 59 * s + s // 2
    assert snapshot.steps == 59
    assert snapshot.busy_ns == 59 * s // 2


def test_a_step_across_a_second_is_cut_at_the_border(make, store):
    s = make.S
    store.run_list = [make.run(heartbeat_ns=make.START + 3 * s)]
    step = make.step(0, make.START + s // 2, s, idle_before_ns=s // 2, running=8)
    store.step_list, store.share_list = [step], [make.share(step)]
    series = make.feed(store).poll().series
    assert series.riding == (4.0, 4.0, 0.0)
    assert series.step_ms == (None, 1000.0, None)
    assert series.decode == (1.0, 1.0, None)


def test_latency_is_the_nearest_rank_of_the_requests_that_finished(make, store):
    s, ms = make.S, make.MS
    end = make.START + 30 * s
    store.run_list = [make.run(heartbeat_ns=end)]
    for i in range(1, 101):
        store.request_list.append(
            make.request(i, end - i * ms, arrived_ns=end - 9 * s, first_token_ns=end - 9 * s + i * ms, output_tokens=1)
        )
    snapshot = make.feed(store).poll()
    assert (snapshot.ttft.p50_ns, snapshot.ttft.p99_ns, snapshot.ttft.requests) == (50 * ms, 99 * ms, 100)
    assert snapshot.itl is None


def test_time_per_token_leaves_the_first_token_out(make, store):
    end = make.START + 5 * make.S
    store.run_list = [make.run(heartbeat_ns=end)]
    store.request_list = [make.request(1, end, first_token_ns=end - make.S, output_tokens=51)]
    assert make.feed(store).poll().itl.p50_ns == 20 * make.MS


def test_without_finished_requests_latency_is_unknown_with_a_reason(make, store):
    store.run_list = [make.run(heartbeat_ns=make.START + make.S)]
    store.request_list = [make.request(1, make.START + 5, finish_reason="rejected", first_token_ns=None)]
    snapshot = make.feed(store).poll()
    assert (snapshot.ttft, snapshot.rejected, snapshot.finished) == (None, 1, 0)
    assert snapshot.latency_reason == "no request finished in the window"


def test_batching_is_compared_with_riding_alone(make, store):
    """Constants: o 300 µs, w 6000 µs, c 20 µs. Alone: 3 × 6.3 ms of decode; 0.3 + 20·400 µs of prefill."""
    ms = make.MS
    store.run_list = [make.run(heartbeat_ns=make.START + 15 * ms)]
    step = make.step(0, make.START, 15 * ms)
    store.step_list = [step]
    store.share_list = [
        make.share(step, seqs=3, rows=3, gpu_ns=7 * ms),
        make.share(step, "b", phase="prefill", seqs=1, rows=400, attn=(200_000) << 20, gpu_ns=7 * ms),
        make.share(step, "b", account="overhead", phase="prefill", seqs=0, rows=50, gpu_ns=ms),
    ]
    snapshot = make.feed(store).poll()
    assert snapshot.alone_ns == 3 * 6_300_000 + 300_000 + 8_000_000 + 200_000
    assert snapshot.alone_busy_ns == 15 * ms
    assert snapshot.saving == 1 - 15_000_000 / 27_400_000


def test_a_thousand_tokens_cost_busy_time_now_and_more_alone(make, store):
    """Three riders in 15 ms: 5 GPU-ms a token, 5000 a thousand; alone each takes 6.3 ms."""
    store.run_list = [make.run(heartbeat_ns=make.START + 15 * make.MS)]
    step = make.step(0, make.START, 15 * make.MS)
    store.step_list, store.share_list = [step], [make.share(step, seqs=3, rows=3, output_tokens=3)]
    snapshot = make.feed(store).poll()
    assert (snapshot.per_1k, snapshot.per_1k_alone) == (5000, 6300)


@pytest.mark.parametrize("text", [None, "", "[]", '{"overhead": 1}', "not json"])
def test_without_a_usable_step_model_there_is_no_comparison(make, store, text):
    store.run_list = [make.run(step_model=text, heartbeat_ns=make.START + make.S)]
    snapshot = make.feed(store).poll()
    assert (snapshot.alone_ns, snapshot.saving) == (None, None)
    assert snapshot.alone_reason == "the run has no step model"


def test_compute_and_bandwidth_are_measured_against_the_datasheet_of_all_gpus(make, store):
    s = make.S
    store.run_list = [make.run(gpus=2, heartbeat_ns=make.START + 2 * s)]
    steps = [
        make.step(0, make.START, s, gpus=2, flops=500_000_000_000_000, bytes=5_000_000_000_000),
        make.step(1, make.START + s, s, gpus=2),
    ]
    store.step_list, store.share_list = steps, [make.share(step) for step in steps]
    feed = Feed(store, lambda _: (1_000_000_000_000_000, 5_000_000_000_000))
    snapshot = feed.poll()
    assert (snapshot.compute_used, snapshot.bandwidth_used) == (0.25, 0.5)
    assert Feed(store).poll().roofline_reason == "no datasheet for H100"


def test_an_idle_engine_grows_idle_with_its_heartbeat(make, store):
    s = make.S
    step = make.step(0, make.START, s, running=5)
    store.run_list = [make.run(heartbeat_ns=make.START + s)]
    store.step_list, store.share_list = [step], [make.share(step, seqs=5)]
    feed = make.feed(store)
    before = feed.poll()
    store.run_list = [make.run(heartbeat_ns=make.START + 4 * s)]
    after = feed.poll()
    assert (before.engine.state, before.riding, before.tenants[0].riding) == ("live", 5, 5)
    assert (after.engine.state, after.riding, after.tenants[0].riding) == ("idle", 0, 0)
    assert after.accounts.idle - before.accounts.idle == 3 * s


def test_the_state_of_an_engine(make, store):
    s = make.S
    clock = {"wall": make.START + 5 * s, "steady": 0}
    feed = Feed(store, wall_ns=lambda: clock["wall"], steady_ns=lambda: clock["steady"])
    assert feed.poll() is None
    store.run_list = [make.run(clock="real", load_ns=8 * s, heartbeat_ns=make.START + 5 * s)]
    assert feed.poll().engine.state == "starting"
    store.run_list = [make.run(clock="real", load_ns=0, heartbeat_ns=make.START + 5 * s)]
    clock["wall"] += 4 * s
    assert feed.poll().engine.behind_ns == 4 * s
    clock["wall"] += 7 * s
    assert feed.poll().engine.state == "lost"
    store.run_list = [make.run(clock="real", heartbeat_ns=make.START + 5 * s, ended_ns=make.START + 6 * s)]
    ended = feed.poll().engine
    assert (ended.state, ended.behind_ns) == ("ended", None)


def test_a_virtual_engine_is_lost_when_nothing_moves_any_more(make, store):
    clock = {"steady": 0}
    store.run_list = [make.run(heartbeat_ns=make.START + make.S)]
    feed = Feed(store, wall_ns=lambda: make.START + 10**18, steady_ns=lambda: clock["steady"])
    assert feed.poll().engine.state == "idle"
    clock["steady"] = 11 * make.S
    assert feed.poll().engine.state == "lost"
    store.run_list = [make.run(heartbeat_ns=make.START + 2 * make.S)]
    assert feed.poll().engine.state == "idle"


def test_a_restarted_engine_takes_over(make, store):
    s = make.S
    store.run_list = [make.run(ended_ns=make.START + 5 * s)]
    feed = make.feed(store)
    assert feed.poll().engine.run_id == "run-1"
    store.run_list.append(make.run(run_id="run-2", started_ns=make.START + 6 * s, heartbeat_ns=make.START + 8 * s))
    step = make.step(0, make.START + 6 * s, s, run_id="run-2")
    store.step_list.append(step)
    store.share_list.append(make.share(step, "new"))
    snapshot = feed.poll()
    assert (snapshot.engine.run_id, snapshot.wall_ns) == ("run-2", 2 * s)
    assert [t.tenant_id for t in snapshot.tenants] == ["new"]


def test_the_seats_bound_the_batch_bins(make, store):
    store.run_list = [make.run(max_num_seqs=48, heartbeat_ns=make.START + 1)]
    assert [b.label for b in make.feed(store).poll().bins] == ["1", "2–4", "5–8", "9–16", "17–32", "33–48"]
    store.run_list = [make.run(max_num_seqs=1, heartbeat_ns=make.START + 1)]
    assert [b.label for b in make.feed(store).poll().bins] == ["1"]


def test_nothing_is_read_twice(make, told):
    store = make.store()
    store.run_list, store.rate_list = told.run_list, told.rate_list
    store.step_list, store.share_list, store.request_list = told.step_list, told.share_list, told.request_list
    feed = make.feed(store)
    feed.poll()
    read = store.read_rows
    feed.poll()
    assert store.read_rows == read == len(told.step_list) + len(told.share_list) + len(told.request_list)


def test_pages_are_read_to_the_end(make, told, monkeypatch):
    whole = make.feed(told).poll()
    monkeypatch.setattr("farebox.tui.feed.PAGE", 997)
    assert make.feed(told).poll() == whole


@tries(20)
@given(cuts=st.lists(st.integers(0, 120), max_size=6), late=st.integers(0, 30))
def test_however_a_store_grows_the_figures_are_the_same(make, cuts, late):
    """Steps come in any portions, and shares may be there before the steps they belong to."""
    whole = make.ladder(120)
    store = make.store()
    store.rate_list = whole.rate_list
    feed = Feed(store, wall_ns=lambda: 0, steady_ns=lambda: 0)
    for upto in sorted(cuts):
        store.step_list = whole.step_list[:upto]
        store.share_list = whole.share_list[: 3 * upto + late]
        end = store.step_list[-1].ended_ns if upto else make.START
        store.run_list = [make.run(heartbeat_ns=end)]
        feed.poll()
    store.run_list, store.step_list, store.share_list = whole.run_list, whole.step_list, whole.share_list
    store.request_list = whole.request_list
    assert feed.poll() == Feed(whole, wall_ns=lambda: 0, steady_ns=lambda: 0).poll()


@tries(40)
@given(
    steps=st.lists(st.tuples(st.integers(0, 3 * 10**9), st.integers(0, 3 * 10**9), st.integers(1, 4)), max_size=40),
    load=st.integers(0, 2 * 10**9),
    rest=st.integers(0, 5 * 10**9),
)
def test_any_window_adds_up_to_the_nanosecond(make, steps, load, rest):
    store = make.store()
    at = make.START + load
    for seq, (gap, duration, cells) in enumerate(steps):
        step = make.step(seq, at + gap, duration, idle_before_ns=gap)
        store.step_list.append(step)
        paid = [duration * (i + 1) // cells - duration * i // cells for i in range(cells)]
        store.share_list += [make.share(step, f"t{i}", gpu_ns=ns) for i, ns in enumerate(paid)]
        at = step.ended_ns
    store.run_list = [make.run(load_ns=load, heartbeat_ns=at + rest)]
    store.rate_list = [make.rate("1.234567")]
    snapshot = make.feed(store).poll()
    assert snapshot.accounts.unobserved == 0
    assert snapshot.accounts.riders == snapshot.busy_ns
    assert snapshot.accounts.total == snapshot.wall_ns
    if snapshot.wall_ns:
        money = snapshot.money
        assert money.riders + money.idle + money.overhead == money.total == 1_234_567
