"""The budget watch: a run with a budget leaves how it stands, what cannot be told has a reason, and it costs little."""

import pytest

from farebox.collector.budget_watch import BudgetWatch, budget_states, put_states
from farebox.collector.embedded import EmbeddedEngine, record
from farebox.costing.budgets import status_of
from farebox.costing.periods import Period
from farebox.costing.report import build_report
from farebox.engine.arrival import Arrival
from farebox.engine.pace import Pace
from farebox.events import BUDGET_STATES, BUDGETS, LEDGER, TENANTS, Budget, Rate, Tenant
from farebox.roofline import Replica, gpu, model
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store
from farebox.tui.feed import Feed

JANUARY = Period.parse("2026-01")
S = 1_000_000_000
RATE = Rate("any", "", "USD", "4.29", None, 0, None, "")


def budget(team="Support", period="2026-01", soft=None, hard=100, currency="USD"):
    return Budget(team, period, "UTC", currency, soft, hard, 0)


def arrivals(start_ns=JANUARY.from_ns + 3600 * S):
    tenants = ("chat", "code")
    return [Arrival(str(n), tenants[n % 2], "standard", start_ns + n * S // 4, 200, 30) for n in range(24)]


def run(store, name="run", pace=None, start_ns=JANUARY.from_ns + 3600 * S, on_tick=None):
    engine = EmbeddedEngine(Replica(gpu("h100"), model("llama-3-8b")), engine_id=name)
    return record(engine.config([name]), arrivals(start_ns), store, pace=pace, on_tick=on_tick)


@pytest.fixture
def store(tmp_path):
    with create_store(tmp_path / "s") as opened:
        opened.put(TENANTS, Tenant("chat", "Chat", "Support", None, None, 0, None))
        yield opened


def test_a_paced_run_leaves_how_its_budget_stands_while_it_goes_on_and_at_its_end(store):
    store.put_rate(RATE)
    store.put(BUDGETS, budget())
    store.put(BUDGETS, budget(period="2025-12"))
    during = []
    run(store, pace=Pace(speed=3), on_tick=lambda _: during.append(store.settings(BUDGET_STATES)))
    first = next(states for states in during if states)
    (state,) = store.settings(BUDGET_STATES)
    newest_ns = max(r.wall_end_ns for r in store.runs())
    assert first[0].seen_ns < state.seen_ns == newest_ns
    ledger = store.read(LEDGER)
    chat = sum(row["gpu_ns"] for row in ledger.to_pylist() if row["tenant_id"] == "chat" and row["account"] == "tenant")
    assert abs(state.spent_micro - chat * 4_290_000 / (3600 * S)) < 2
    assert (state.team, state.period, state.state, state.reason) == ("Support", "2026-01", "above hard", None)
    again = status_of(budget(), state.spent_micro, "USD", newest_ns)
    assert (state.per_day_micro, state.hard_day) == (again.per_day_micro, again.hard_day)


def test_a_screen_sees_it_and_what_it_says_is_what_the_report_says(store):
    store.put_rate(RATE)
    store.put(BUDGETS, budget(soft=1, hard=10**9))
    run(store)
    with LiveReader(store.path) as live:
        snapshot = Feed(live, wall_ns=lambda: 0, steady_ns=lambda: 0).poll()
    (shown,) = snapshot.budgets
    assert {t.tenant_id: t.budget for t in snapshot.tenants} == {"chat": shown, "code": None}
    from farebox.collector.books import load_books

    (status,) = build_report(load_books(store, JANUARY), JANUARY).budgets
    assert (shown.spent_micro, shown.per_day_micro, shown.hard_day, shown.state) == (
        status.spent_micro,
        status.per_day_micro,
        status.hard_day,
        "above soft",
    )


def test_without_a_budget_or_a_run_there_is_nothing_to_tell(store):
    store.put(BUDGETS, budget())
    assert put_states(store) == []
    store.remove(BUDGETS, ("Support", "2026-01", "UTC"))
    run(store)
    assert put_states(store) == store.settings(BUDGET_STATES) == []


def test_spending_without_a_rate_or_in_another_currency_is_unknown_and_says_why(store):
    store.put(BUDGETS, budget())
    run(store)
    assert [(s.spent_micro, s.state, s.reason) for s in budget_states(store)] == [
        (None, "unknown", "some of its time has no rate")
    ]
    store.put_rate(RATE)
    store.put(BUDGETS, budget(currency="EUR", team="Euro"))
    euro, support = sorted(budget_states(store))
    assert (euro.spent_micro, euro.state) == (None, "unknown")
    assert euro.reason == "the rates are in USD, not EUR: there is no conversion rate"
    assert support.spent_micro and support.reason is None


def test_rates_that_contradict_each_other_do_not_stop_a_recording(store):
    store.put_rate(RATE)
    store.put_rate(RATE._replace(from_ns=60 * S))
    store.put(BUDGETS, budget())
    assert run(store)
    (state,) = store.settings(BUDGET_STATES)
    assert state.state == "unknown" and "two rates" in state.reason


def test_spending_that_rests_on_a_damaged_file_is_unknown(store):
    store.put_rate(RATE)
    store.put(BUDGETS, budget())
    run(store)
    for file in (store.path / "archive" / "ledger").rglob("*.parquet"):
        file.write_bytes(b"PAR1")
    (state,) = budget_states(store)
    assert state.spent_micro is None and state.state == "unknown"
    assert ".parquet" in state.reason


def test_it_looks_once_a_minute_and_rests_longer_where_looking_takes_long(store, monkeypatch):
    now, looks, takes = [0.0], [], [0.0]

    def look(_store):
        looks.append(now[0])
        now[0] += takes[0]

    monkeypatch.setattr("farebox.collector.budget_watch.put_states", look)
    watch = BudgetWatch(store, lambda: now[0])
    for second in range(0, 200, 10):
        now[0] = float(second)
        watch.look_if_due()
    assert looks == [0.0, 60.0, 120.0, 180.0]
    takes[0] = 10.0
    now[0] = 240.0
    watch.look_if_due()
    now[0] = 449.0
    watch.look_if_due()
    now[0] = 450.0
    watch.look_if_due()
    assert looks[4:] == [240.0, 450.0]
