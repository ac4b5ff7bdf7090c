"""All pages under a person's hands: every key, names from outside, small terminals, and random keys."""

from __future__ import annotations

import json
import os
import random
from itertools import islice

import pytest
from textual.app import App
from tui_apps import on_store

from farebox.tui.app import top_app
from farebox.tui.glyphs import ASCII, UNICODE, terminal_encoding
from farebox.tui.navigation import PAGES
from farebox.tui.sorting import ORDERS, arranged, order_of
from farebox.tui.state import State
from farebox.tui.widgets.bill_lines import BillLines
from farebox.tui.widgets.tenant_list import TenantList
from farebox.tui.words import terms_of

MODES = [page.mode for page in PAGES]
RANDOM_S = float(os.environ.get("FAREBOX_RANDOM_KEYS_S", "4"))
KEYS = [
    *"1234567abcdefghijklmnoprstuvwxyzGHLS/+-0<>?cy",
    "tab",
    "shift+tab",
    "space",
    "enter",
    "escape",
    "left",
    "right",
]
KEYS += ["up", "down", "pageup", "pagedown", "home", "end", "shift+left", "ctrl+p", "less_than_sign", "backspace"]
SIZES = [(200, 50), (184, 39), (189, 34), (120, 30), (80, 24), (79, 23), (60, 15), (40, 10), (20, 5), (5, 2), (1, 1)]
NAMES = [
    "[/]",
    "[bold",
    "[red]team[/red]",
    "[@click=app.quit]x[/]",
    "\\[escaped]",
    "{curly} %s",
    "a\x1b[31mred\x1b[0m",
    "日本語",
]


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr("farebox.tui.app.POLL_S", 0.05)
    monkeypatch.setattr("farebox.tui.app.RETRY_S", 0.2)


def shown(app) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def open_page(make, pilot, mode, seen):
    await pilot.press(str(MODES.index(mode) + 1))
    await make.settled(pilot, lambda app: app.current_mode == mode and seen in shown(app))


async def test_every_page_opens_by_number_and_tab_and_explains_itself(make, recorded):
    seen = {"live": "of 64 seats", "batch": "got on", "tenants": "4 tenants", "gpu": "MFU", "history": "riders %"}
    seen |= {"bill": "total", "alerts": "next"}
    app = on_store(recorded)
    async with app.run_test(size=(120, 40)) as pilot:
        await make.settled(pilot, lambda a: "of 64 seats" in shown(a))
        for mode in MODES:
            await open_page(make, pilot, mode, seen[mode])
            await pilot.press("question_mark")
            await pilot.pause()
            assert terms_of(mode)[0][0] in shown(app)
            await pilot.press("escape")
        await pilot.press("tab")
        assert app.current_mode == "live"
        await pilot.press("shift+tab")
        assert app.current_mode == "alerts"


async def test_the_keys_of_the_batch_page(make, recorded):
    app = on_store(recorded)
    async with app.run_test(size=(120, 40)) as pilot:
        await open_page(make, pilot, "batch", "last step")
        newest = app.screen.view.rides[-1].step.step_seq
        await pilot.press("left", "h", "H")
        assert app.paused
        assert "12 steps back" in shown(app)
        assert f"step {newest - 12:,}" in shown(app)
        await pilot.press("right", "l")
        assert "10 steps back" in shown(app)
        await pilot.press("f")
        assert app.screen.fill == "context"
        await pilot.press("p")
        assert "last step" in shown(app)


async def test_the_keys_of_the_tenants_page(make, recorded, monkeypatch):
    copied = []
    app = on_store(recorded)
    monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
    async with app.run_test(size=(120, 40)) as pilot:
        await open_page(make, pilot, "tenants", "4 tenants, by GPU %")
        await pilot.press("s")
        assert "by cost per 1k" in shown(app)
        assert app.state.sorts == {"tenants": "per_1k"}
        await pilot.press("S")
        await pilot.press("slash", *"VOICE")
        assert "1 of 4 tenants" in shown(app)
        assert "idle" in shown(app)
        await pilot.press("enter", "c")
        assert copied[0].startswith("voice (fast)")
        await pilot.press("enter")
        await make.settled(pilot, lambda a: "in the queue" in shown(a))
        assert "requests ended" in shown(app)
        await pilot.press("escape")
        await pilot.press("escape")
        assert "4 tenants" in shown(app)
        await pilot.press("j", "j", "k", "down", "G")
        assert app.screen.query_one(TenantList).cursor == 3
        await pilot.press("g")
        assert app.screen.query_one(TenantList).cursor == 0


async def test_the_keys_of_the_bill_page(make, recorded, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    app = on_store(recorded)
    async with app.run_test(size=(120, 40)) as pilot:
        await open_page(make, pilot, "bill", "support-chat")
        total = app.screen.bill.total
        for key, words in (("i", "idle weighted"), ("b", "by team"), ("o", "policy sequence"), ("d", "period month")):
            await pilot.press(key)
            await make.settled(pilot, lambda a: a.screen.bill.choice == a.screen.choice)
            assert words in shown(app)
            assert total in shown(app)
        await pilot.press("e")
        await pilot.press("enter")
        await make.settled(pilot, lambda _: list(tmp_path.glob("bill-2026-01.csv")))
        await pilot.press("x")
        await make.settled(pilot, lambda a: "no month before this one" in shown(a))
        await pilot.press("escape", "left", "r")
        await make.settled(pilot, lambda a: total in shown(a))


async def test_a_line_that_was_folded_is_copied_as_it_is_shown():
    copied = []

    class OneList(App):
        def compose(self):
            yield BillLines(UNICODE)

        def copy(self, text):
            copied.append(text)

    app = OneList()
    async with app.run_test(size=(40, 10)) as pilot:
        app.query_one(BillLines).told = ([(" ".join(f"word{i}" for i in range(12)), "bad")],)
        app.query_one(BillLines).focus()
        await pilot.press("j", "c")
    assert copied == ["word6 word7 word8 word9 word10 word11"]


async def test_the_keys_of_the_history_page_and_a_replay(make, recorded):
    app = on_store(recorded)
    async with app.run_test(size=(120, 40)) as pilot:
        await open_page(make, pilot, "history", "5 min of 5 min")
        await pilot.press("m")
        await make.settled(pilot, lambda a: "was GPU·s" in shown(a))
        await pilot.press("plus", "left", "right", "minus", "0", "m")
        await pilot.press("enter")
        await make.settled(pilot, lambda a: a.current_mode == "live" and "replay 1×" in shown(a))
        for _ in range(9):
            await pilot.press("greater_than_sign")
        await make.settled(pilot, lambda a: "replay 100×" in shown(a))
        await pilot.press("p")
        await make.settled(pilot, lambda a: "paused" in shown(a))
        await pilot.press("p", "less_than_sign", "n")
        await make.settled(pilot, lambda a: "ended" in shown(a))


async def test_what_is_chosen_is_kept_between_starts(make, recorded, tmp_path):
    path = tmp_path / "deep" / "top.json"
    app = on_store(recorded, state=State.load(path))
    async with app.run_test(size=(80, 24)) as pilot:
        await open_page(make, pilot, "tenants", "4 tenants")
        await pilot.press("s")
        app.action_toggle_theme()
        await pilot.pause()
    again = on_store(recorded, state=State.load(path))
    async with again.run_test(size=(80, 24)) as pilot:
        await make.settled(pilot, lambda a: "by cost per 1k" in shown(a))
        assert not again.current_theme.dark


@pytest.mark.parametrize("text", ["", "{", "[]", '{"page": "nowhere", "sorts": {"a": 1}}', '{"sorts": 3}', "\x00"])
def test_a_state_that_makes_no_sense_is_no_error(tmp_path, text):
    path = tmp_path / "top.json"
    path.write_text(text)
    state = State.load(path)
    assert state.page == "live"
    state.save()
    assert json.loads(path.read_text())["page"] == "live"


async def test_the_palette_finds_pages_tenants_and_engines_literally(make):
    from farebox.tui.palette import Places

    store = make.story(4, tuple((name, "standard", 2) for name in NAMES))
    app = make.app(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await make.settled(pilot, lambda a: a.newest is not None)
        places = Places(app.screen)
        found = {place.name: place for place in places._every()}
        assert {"Live (1)", "Alerts (7)", "Tenant [red]team[/red]", "Engine vllm-0: model llama-3-8b"} <= set(found)
        hits = [hit.text async for hit in places.search("[red]")]
        assert hits[0] == "Tenant [red]team[/red]"
        await found["Tenant [/]"].go()
        await make.settled(pilot, lambda a: a.current_mode == "tenants" and "requests ended" in shown(a))


async def test_names_from_outside_are_shown_literally_on_every_page(make):
    store = make.story(20, tuple((name, "standard", 2) for name in NAMES))
    store.gpu_list = [
        make.gpu(i, make.START + 20 * make.S, name=name, missing='{"x": "[/]"}') for i, name in enumerate(NAMES)
    ]
    app = make.app(store)
    async with app.run_test(size=(120, 40)) as pilot:
        await make.settled(pilot, lambda a: a.newest is not None)
        for mode in ("batch", "tenants", "gpu"):
            await open_page(make, pilot, mode, "[red]team[/red]")
            for name in NAMES[:6]:
                assert name in shown(app), mode
            assert r"\x1b[31m" in shown(app)
        await open_page(make, pilot, "bill", "no store of its own")


async def test_busy_is_not_full_and_reserved_is_not_used(make, told):
    """A18 and G13: 100 % utilisation at 190 of 700 W; 73 of 80 GiB held."""
    store = make.store()
    vars(store).update(vars(told))
    store.gpu_list = [make.gpu(at_ns=make.START + s * make.S) for s in range(80)]
    store.gpu_list.append(make.gpu(1, make.START + 79 * make.S, util_pct=None, missing='{"util_pct": "not supported"}'))
    app = make.app(store)
    async with app.run_test(size=(120, 40)) as pilot:
        await open_page(make, pilot, "gpu", "busy time")
        text = shown(app)
        assert all(words in text for words in ("100 %", "190/700 W 27 %", "memory reserved", "73/80 GiB", "n/a"))
        await pilot.press("j")
        assert "util_pct: not supported" in shown(app)
        assert "not that it was full" in " ".join(meaning for _, meaning in terms_of("gpu"))


async def test_ten_thousand_tenants_scroll_and_sort_in_time(make):
    from time import thread_time

    store = make.ladder(40)
    names = make.store()
    vars(names).update(vars(store))
    cell = store.share_list[0]
    names.share_list = [*store.share_list, *(cell._replace(tenant_id=f"t-{i:05d}", gpu_ns=0) for i in range(10_000))]
    names.share_list.sort(key=lambda share: share.step_seq)
    app = make.app(names)
    async with app.run_test(size=(120, 40)) as pilot:
        await open_page(make, pilot, "tenants", "10,003 tenants")
        await pilot.press("p")
        await pilot.pause(0.1)
        spent = []
        for key in ("down", "pagedown", "end", "s", "home"):
            start = thread_time()
            await pilot.press(key)
            spent.append(thread_time() - start)
        assert app.screen.query_one(TenantList).cursor == 0
    assert sorted(spent)[2] < 0.2


def test_orders_and_filters(make):
    rows = make.feed(make.story(4)).poll().tenants
    for order in ORDERS:
        numbers = arranged(rows, order, "")
        assert sorted(numbers) == list(range(len(rows)))
        values = [order.of(rows[i]) for i in numbers]
        assert values == sorted(values, reverse=True)
    assert [rows[i].tenant_id for i in arranged(rows, order_of("name"), "CHAT")] == ["support-chat"]
    assert [rows[i].tier for i in arranged(rows, order_of(None), "batch")] == ["batch"]


@pytest.mark.parametrize(
    ("environment", "forced", "expected"),
    [
        ({"LANG": "C"}, True, "ascii"),
        ({}, True, "ascii"),
        ({"LANG": "en_US.UTF-8"}, True, "utf-8"),
        ({"LC_ALL": "C.UTF-8"}, False, "utf-8"),
        ({"LC_CTYPE": "C.UTF-8"}, False, "utf-8"),
        ({"LANG": "C", "PYTHONUTF8": "1"}, True, "utf-8"),
        ({"LANG": "C.UTF-8", "TERM": "linux"}, False, "ascii"),
    ],
)
def test_a_terminal_gets_signs_that_its_locale_names(environment, forced, expected):
    assert terminal_encoding("utf-8", environment, forced) == expected


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII])
async def test_random_keys_and_sizes_never_crash(make, recorded, glyphs, tmp_path, monkeypatch):
    """A few seconds; FAREBOX_RANDOM_KEYS_S=60 for a minute. The seed is fixed, so a crash can be seen again."""
    from time import monotonic

    monkeypatch.chdir(tmp_path)
    dice = random.Random(7)
    app = on_store(recorded, glyphs=glyphs)
    async with app.run_test(size=(80, 24)) as pilot:
        end = monotonic() + RANDOM_S / 2
        while monotonic() < end:
            if dice.random() < 0.1:
                await pilot.resize_terminal(*dice.choice(SIZES))
            await pilot.press(dice.choice(KEYS))
            if glyphs is ASCII and len(app.screen_stack) == 1 and "paste" not in shown(app):
                assert shown(app).isascii()
        await pilot.resize_terminal(120, 40)
        assert app.is_running


def test_the_app_starts_with_the_page_that_is_asked_for(tmp_path):
    from farebox.tui.app import Options

    app = top_app(tmp_path, options=Options(ascii_only=True, page="bill"), state=State())
    assert app.state.page == "bill"
    assert app.glyphs is ASCII
    assert list(islice((page.mode for page in PAGES), 2)) == ["live", "batch"]
