"""History, replay and bills on a real store."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farebox.cli.desk import StoreDesk
from farebox.errors import InputError
from farebox.events import LEDGER, STEPS
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store, open_store
from farebox.tui.feed import Feed
from farebox.tui.line import plain
from farebox.tui.replay import ReplayClock, ReplayReader
from farebox.tui.views.bill import IDLES, Choice, Clerk, write_bill
from farebox.tui.views.history import MINUTE_NS, Historian, Window

CHEAP_POLICIES = ("roofline", "sequence", "tokens", "weighted_tokens")


def test_a_replay_shows_at_an_instant_what_the_live_screen_showed_then(recorded, make):
    now = make.START + 70 * make.S
    steady = [0]
    clock = ReplayClock(make.START, 10, lambda: steady[0])
    reader = ReplayReader(open_store(recorded), clock)
    feed = Feed(reader, wall_ns=clock.now_ns, steady_ns=clock.now_ns)
    assert feed.poll() is None
    while clock.now_ns() < now:
        steady[0] += make.S // 2
        shown = feed.poll()
    assert clock.now_ns() == now
    assert (shown.now_ns, shown.engine.state) == (now, "live")
    with open_store(recorded) as store:
        steps = store.read(STEPS, None, None, now)
    ended = [s for s in STEPS.from_arrow(steps) if now - 60 * make.S < s.ended_ns <= now]
    assert shown.steps == len(ended)
    assert shown.accounts.total == 60 * make.S
    assert shown.output_tokens == sum(s.output_tokens for s in ended)
    steady[0] += 3600 * make.S
    last = feed.poll()
    with LiveReader(recorded) as live:
        assert last == Feed(live, wall_ns=clock.now_ns, steady_ns=clock.now_ns).poll()
    reader.close()


def test_a_replay_clock_changes_speed_and_stands_without_a_jump():
    steady = [0]
    clock = ReplayClock(1000, 1, lambda: steady[0])
    steady[0] = 5
    clock.set_speed(100)
    steady[0] = 6
    assert clock.now_ns() == 1105
    clock.stand(True)
    steady[0] = 50
    assert clock.now_ns() == 1105
    clock.stand(False)
    steady[0] = 51
    assert clock.now_ns() == 1205


def test_a_window_adds_up_to_the_ledger(recorded):
    past = Historian(StoreDesk(recorded)).look(None, 40)
    with open_store(recorded) as store:
        lines = LEDGER.from_arrow(store.read(LEDGER))
    assert past.sums.total == sum(line.gpu_ns for line in lines)
    assert sum(map(sum, past.accounts.values())) == past.sums.total
    assert sum(past.tokens) == sum(line.prompt_tokens + line.output_tokens for line in lines)
    assert sum(past.requests) == sum(past.sums.requests.values()) == sum(line.requests for line in lines)
    half = Window(past.window.from_ns, past.window.from_ns + MINUTE_NS)
    assert Historian(StoreDesk(recorded)).look(half, 40).sums.total == sum(
        line.gpu_ns for line in lines if line.minute_ns == half.from_ns
    )


@given(st.integers(5, 5000), st.lists(st.sampled_from(["in", "out", "left", "right"]), max_size=30))
def test_windows_stay_within_the_store(minutes, moves):
    whole = Window(0, minutes * MINUTE_NS)
    window = whole
    for move in moves:
        if move in ("in", "out"):
            window = window.zoomed(0.5 if move == "in" else 2, whole)
        else:
            window = window.moved(-0.25 if move == "left" else 0.25, whole)
        assert whole.from_ns <= window.from_ns < window.to_ns <= whole.to_ns
        assert min(5, minutes) <= window.minutes <= minutes


def test_no_policy_and_no_grouping_moves_the_total(recorded):
    clerk = Clerk(StoreDesk(recorded))
    choices = [Choice(idle=idle) for idle in IDLES] + [Choice(policy=policy) for policy in CHEAP_POLICIES[1:3]]
    choices += [Choice(by=("tenant", "tier")), Choice(by=("day",)), Choice("day"), Choice("month")]
    bills = [clerk.bill(choice, 100) for choice in choices]
    assert len({bill.total for bill in bills}) == 1
    assert not any(bill.problems for bill in bills)
    text = "\n".join(plain(line) for line in bills[0].lines)
    assert all(words in text for words in ("support-chat", "idle", "total"))
    assert len({str(bill.lines) for bill in bills}) == len(bills)


def test_a_bill_is_written_once_in_the_format_of_its_name(recorded, tmp_path):
    report = Clerk(StoreDesk(recorded)).bill(Choice(), 100).report
    write_bill(report, tmp_path / "bill.json")
    kept = json.loads((tmp_path / "bill.json").read_text())
    assert kept["total"]["amount_micro"] == report.total.amount_micro
    for name, reason in (("bill.json", "there already"), ("bill.txt", "end the name"), ("no/bill.csv", "cannot write")):
        with pytest.raises(InputError, match=reason):
            write_bill(report, tmp_path / name)


def test_what_cannot_be_billed_or_explained_is_said_in_words(recorded, tmp_path):
    with pytest.raises(InputError, match="no day before this one"):
        Clerk(StoreDesk(recorded)).explain(Choice("day"), 100)
    with create_store(tmp_path / "empty"):
        pass
    for look in (Historian(StoreDesk(tmp_path / "empty")).look, Clerk(StoreDesk(tmp_path / "empty")).bill):
        with pytest.raises(InputError, match="nothing is booked yet"):
            look(None if look.__name__ == "look" else Choice(), 80)
