"""Budgets on the screen: exact percents, the one to worry about, and nothing where there is nothing."""

from __future__ import annotations

import json
from itertools import count

import pytest
from rich.cells import cell_len

from farebox.events import BUDGET_STATES, TENANTS
from farebox.tui.budgets import budget_line, spent_percent
from farebox.tui.feed import Feed
from farebox.tui.glyphs import ASCII, UNICODE
from farebox.tui.line import plain
from farebox.tui.plain import plain_snapshot, to_json

EXPLAIN = "farebox explain STORE 2025-12 2026-01"


@pytest.fixture
def watched(make):
    """A minute of the story with budget states, and who pays for whom; gives the snapshot."""

    def watch(*states, tenants=None):
        store = make.story(20)
        store.settings_of[BUDGET_STATES] = list(states)
        store.settings_of[TENANTS] = tenants or [make.tenant("support-chat", "Support")]
        return make.feed(store).poll()

    return watch


@pytest.fixture
def told(watched):
    """What is told about budget states in a width."""

    def tell(*states, width=200, glyphs=UNICODE):
        line = budget_line(watched(*states), width, glyphs)
        return plain(line) if line else None

    return tell


@pytest.mark.parametrize(
    ("spent", "soft", "hard", "state", "text"),
    [
        ("3.56", "3", "4", "above soft", "▲ 89 %"),
        ("3.999999", None, "4", "within", "99 %"),
        ("4", None, "4", "within", "100 %"),
        ("4.000001", None, "4", "above hard", "▲ 100 %"),
        ("40", None, "4", "above hard", "▲>999 %"),
        ("2", "4", None, "within", "50 %"),
        ("0", "4", None, "within", "0 %"),
        ("0.000001", "4", None, "within", "<1 %"),
        ("1", None, "0", "above hard", "▲ –"),
        (None, None, "4", "unknown", "–"),
    ],
)
def test_percents_are_those_of_the_hard_limit_or_else_the_soft_one(make, watched, spent, soft, hard, state, text):
    snapshot = watched(make.budget(spent, soft, hard, state=state))
    rows = {t.tenant_id: t.budget for t in snapshot.tenants}
    assert spent_percent(rows["support-chat"]) == text
    assert len(text) <= 7
    assert rows["voice"] is None and spent_percent(None) == "–"


def test_amounts_come_through_as_the_integers_that_were_stored(make, watched):
    state = make.budget("3.560001", "3", "4", per_day_micro=123_457, state="above soft", hard_day="2026-01-18")
    snapshot = watched(state)
    (budget,) = json.loads(to_json(snapshot))["budgets"]
    assert budget == state._asdict()
    assert json.loads(to_json(snapshot))["tenants"][0]["budget"] == budget


def test_of_several_budgets_a_tenant_shows_the_worst_that_holds_now(make, watched):
    day = make.budget("1", None, "4", period="2026-01-01")
    year = make.budget("2", None, "4", period="2026", hard_day="2026-12-30")
    past = make.budget("9", None, "4", period="2025-12", state="above hard")
    other = make.budget("5", "4", None, team="Others", state="above soft")
    away = make.budget("9", None, "4", period="2026-01-01", tz="Pacific/Auckland")
    ahead = make.budget("0", None, "4", period="2026-01-01", tz="America/New_York")
    snapshot = watched(day, year, past, other, away, ahead)
    assert [(b.team, b.period, b.tz) for b in snapshot.budgets] == [
        ("Others", "2026-01", "UTC"),
        ("Support", "2026", "UTC"),
        ("Support", "2026-01-01", "Pacific/Auckland"),
        ("Support", "2026-01-01", "UTC"),
    ]
    assert next(t.budget for t in snapshot.tenants if t.tenant_id == "support-chat").period == "2026"


def test_a_tenant_pays_from_the_budget_of_the_team_that_it_is_in_now(make, watched):
    later = make.START + 60 * make.S
    tenants = [
        make.tenant("support-chat", "Old", 0, make.START),
        make.tenant("support-chat", " Support ", make.START, later),
        make.tenant("support-chat", "New", later),
        make.tenant("code-completion", None),
    ]
    budgets = [make.budget("1", None, "4", team=team) for team in ("Old", "Support", "New")]
    rows = {t.tenant_id: t.budget for t in watched(*budgets, tenants=tenants).tenants}
    assert rows["support-chat"].team == "Support"
    assert rows["code-completion"] is None


@pytest.mark.parametrize(
    ("budget", "text"),
    [
        (
            ("3.56", "3", "4", {"state": "above soft", "hard_day": "2026-01-18"}),
            f"▲ Support has spent 3.56 of 4.00 USD for 2026-01, at this pace all of it by 18 Jan: {EXPLAIN} shows why",
        ),
        (
            ("4321.5", None, "4000", {"state": "above hard"}),
            f"▲ Support has spent 4,321.50 of 4,000.00 USD for 2026-01, more than its hard limit: {EXPLAIN} shows why",
        ),
        (
            ("3.56", "3", None, {"state": "above soft"}),
            f"▲ Support has spent 3.56 USD for 2026-01, above its soft limit of 3.00: {EXPLAIN} shows why",
        ),
        (
            ("0.001", "0.0012", "0.009", {"soft_day": "2026-01-31"}),
            (
                "▲ Support has spent 0.001000 of 0.009000 USD for 2026-01, at this pace its soft limit of 0.001200 "
                f"by 31 Jan: {EXPLAIN} shows why"
            ),
        ),
        (
            (None, None, "4", {"state": "unknown", "reason": "some of its time has no rate"}),
            "▲ What Support has spent for 2026-01 is not known: some of its time has no rate",
        ),
        (("1", "3", "4", {}), None),
    ],
)
def test_the_worst_budget_is_told_in_plain_words_and_none_when_all_is_well(make, told, budget, text):
    spent, soft, hard, changes = budget
    assert told(make.budget(spent, soft, hard, **changes)) == text


@pytest.mark.parametrize(
    ("period", "before"),
    [("2026", "2025"), ("2026-01", "2025-12"), ("2026-01-01", "2025-12-31")],
)
def test_the_next_step_compares_with_the_period_before(make, told, period, before):
    text = told(make.budget("5", None, "4", period=period, state="above hard"))
    assert f"farebox explain STORE {before} {period} shows why" in text


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
@pytest.mark.parametrize("width", [200, 118, 98, 78, 58, 20, 3])
def test_fewer_words_where_it_is_narrow(make, told, width, glyphs):
    state = make.budget("3.56", "3", "4", state="above soft", hard_day="2026-01-18")
    text = told(state, width=width, glyphs=glyphs)
    assert cell_len(text) <= width
    assert text.startswith("▲" if glyphs is UNICODE else "!")
    assert text.isascii() is (glyphs is ASCII)
    if width >= 78:
        assert "Support" in text and "3.56 of 4.00 USD" in text and "18 Jan" in text and "farebox explain" in text


def test_names_and_reasons_are_shown_literally(make, told):
    state = make.budget("5", None, "4", team="[/]\x1b[31m東京", state="above hard")
    assert r"[/]\x1b[31m東京 has spent" in told(state)
    assert told(state, glyphs=ASCII).isascii()
    unknown = make.budget(None, None, "4", team="東京", state="unknown", reason="évil\x1b")
    assert r"évil\x1b" in told(unknown)
    assert told(unknown, glyphs=ASCII).startswith("! What ")
    assert told(unknown, glyphs=ASCII).isascii()


def test_plain_text_tells_all_words_in_80_columns(make, watched):
    state = make.budget("3.56", "3", "4", state="above soft", hard_day="2026-01-18")
    text = plain_snapshot(watched(state))
    assert max(map(cell_len, text.splitlines())) <= 80
    assert f"all of it by 18 Jan: {EXPLAIN} shows why" in " ".join(text.split())
    wide = plain_snapshot(watched(state), ASCII, 120)
    head = next(line for line in wide.splitlines() if line.startswith("tenant, last"))
    row = next(line for line in wide.splitlines() if line.startswith("support-chat"))
    end = head.index("budget") + len("budget")
    assert row[end - 6 : end] == "! 89 %"
    assert wide.isascii()


def test_the_budget_column_gives_way_before_any_other(make, watched):
    snapshot = watched(make.budget("1", None, "4"))
    assert "budget" in plain_snapshot(snapshot, UNICODE, 90)
    narrow = plain_snapshot(snapshot, UNICODE, 80)
    assert "budget" not in narrow and "1k out" in narrow


def test_without_a_budget_nothing_is_added(make, watched):
    text = plain_snapshot(watched(), UNICODE, 200)
    assert "budget" not in text and "▲" not in text


def test_budgets_are_read_again_after_ten_seconds(make, store):
    store.run_list = [make.run(heartbeat_ns=make.START + make.S)]
    store.settings_of[BUDGET_STATES] = [make.budget("1", None, "4")]
    ticks = count(0, 3 * make.S)
    now = 0
    feed = Feed(store, wall_ns=lambda: 0, steady_ns=lambda: now)
    assert feed.poll().budgets[0].spent_micro == 1_000_000
    store.settings_of[BUDGET_STATES] = [make.budget("2", None, "4")]
    seen = []
    for _ in range(5):
        now = next(ticks)
        seen.append(feed.poll().budgets[0].spent_micro)
    assert seen == [1_000_000] * 4 + [2_000_000]
    assert store.settings_read == 2 * 6 + 6  # the source states are read at every look
