"""The app under a person's hands."""

from __future__ import annotations

import subprocess
import sys

import pytest
from textual.geometry import Size

from farebox.storage.errors import StoreNotFoundError
from farebox.tui.glyphs import ASCII
from farebox.tui.messages import Failed, Polled
from farebox.tui.screens.help import HelpScreen
from farebox.tui.widgets.panels import Notice
from farebox.tui.widgets.tenants import Tenants
from farebox.tui.words import terms_of


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    """Poll and retry faster than people need."""
    monkeypatch.setattr("farebox.tui.app.POLL_S", 0.05)
    monkeypatch.setattr("farebox.tui.app.RETRY_S", 0.05)


SIZES = [(200, 50), (184, 39), (189, 34), (80, 24), (79, 23), (60, 16), (40, 10), (20, 5), (1, 1), (120, 40)]


def shown(app) -> str:
    """Everything on the screen as text."""
    lines = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in lines)


def painted(app) -> bool:
    return "riding" in shown(app)


async def test_the_live_page_shows_the_store(make, told):
    app = make.app(told)
    async with app.run_test(size=(80, 24)) as pilot:
        await make.settled(pilot, painted)
        text = shown(app)
        for words in ("of 64 seats", "no step", "$4.29/h", "support-chat", "voice (fast)", "overhead", "Quit", "Help"):
            assert words in text


async def test_q_leaves_and_closes_the_store(make, told):
    reader = make.store()
    reader.run_list, reader.rate_list = told.run_list, told.rate_list
    app = make.app(reader)
    async with app.run_test() as pilot:
        await make.settled(pilot, painted)
        await pilot.press("q")
        await pilot.pause()
    assert app.return_code == 0
    assert reader.close_called.wait(5)


async def test_p_holds_the_figures_while_reading_goes_on(make, store):
    store.run_list = [make.run(heartbeat_ns=make.START + make.S)]
    app = make.app(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await make.settled(pilot, painted)
        await pilot.press("p")
        assert "paused  00:00:01" in shown(app)
        polls = store.polls
        store.run_list = [make.run(heartbeat_ns=make.START + 9 * make.S)]
        await make.settled(pilot, lambda _: store.polls >= polls + 2)
        assert "paused  00:00:01" in shown(app)
        await pilot.press("p")
        await make.settled(pilot, lambda a: "00:00:09" in shown(a))
        assert "paused" not in shown(app)


async def test_the_question_mark_explains_and_escape_goes_back(make, told):
    app = make.app(told)
    async with app.run_test(size=(80, 110)) as pilot:
        await make.settled(pilot, painted)
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, HelpScreen)
        text = shown(app)
        assert all(term in text for term, _ in terms_of("live"))
        await pilot.press("escape")
        await pilot.pause()
        assert painted(app)


async def test_help_survives_any_width(make, told):
    app = make.app(told)
    async with app.run_test(size=(80, 24)) as pilot:
        await make.settled(pilot, painted)
        await pilot.press("question_mark")
        for width, height in ((20, 5), (1, 1), (70, 24)):
            await pilot.resize_terminal(width, height)
            await pilot.pause()
        assert "Live: what the figures mean" in shown(app)


async def test_the_theme_can_be_toggled_from_the_palette(make, told):
    app = make.app(told)
    async with app.run_test(size=(80, 24)) as pilot:
        await make.settled(pilot, painted)
        titles = {command.title: command for command in app.get_system_commands(app.screen)}
        assert app.current_theme.dark
        titles["Light or dark"].callback()
        await pilot.pause()
        assert not app.current_theme.dark
        assert painted(app)


async def test_many_tenants_scroll_between_head_and_foot(make):
    store = make.story(6, tuple((f"tenant-{i:02d}", "standard", 1) for i in range(30)))
    app = make.app(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await make.settled(pilot, painted)
        first = next(t.tenant_id for t in app.query_one(Tenants).snapshot.tenants)
        last = app.query_one(Tenants).snapshot.tenants[-1].tenant_id
        assert first in shown(app)
        assert last not in shown(app)
        assert "more" in shown(app)
        await pilot.press("end")
        assert last in shown(app)
        assert first not in shown(app)
        assert all(words in shown(app) for words in ("tenant, last", "idle ", "overhead"))
        await pilot.press("home")
        assert first in shown(app)
        await pilot.press("down")
        assert first not in shown(app)


async def test_a_store_that_is_not_there_is_told_and_awaited(make, told):
    there = []

    def open_reader():
        if not there:
            raise StoreNotFoundError("there is no store at [red]x[/red]")
        return told

    app = make.app(told)
    app._open_reader = open_reader
    async with app.run_test(size=(80, 24)) as pilot:
        words = "since 00:00:00 UTC, retrying: there is no store at [red]x[/red]"
        await make.settled(pilot, lambda a: words in shown(a))
        there.append(True)
        await make.settled(pilot, painted)
        assert not app.screen.query_one(Notice).display


async def test_the_last_figures_stay_while_the_store_cannot_be_read(make, store):
    store.run_list = [make.run(heartbeat_ns=make.START + make.S)]
    app = make.app(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await make.settled(pilot, painted)
        store.error = OSError("disk\x1b[31m gone")
        await make.settled(pilot, lambda a: r"OSError: disk\x1b[31m gone" in shown(a))
        assert painted(app)
        store.error = None
        await make.settled(pilot, lambda a: "retrying" not in shown(a))


async def test_an_empty_store_says_that_it_waits(make, store):
    app = make.app(store)
    async with app.run_test(size=(80, 24)) as pilot:
        await make.settled(pilot, lambda a: "holds no run yet" in shown(a))
        store.run_list = [make.run(heartbeat_ns=make.START + make.S)]
        await make.settled(pilot, painted)


async def test_names_with_markup_neither_crash_nor_vanish(make):
    names = ("[/]", "[red]x[/red]", "[@click=app.quit]x[/]", "a\x1b]0;b")
    store = make.story(4, tuple((name, "standard", 2) for name in names))
    store.run_list = [store.run_list[0]._replace(model="[/b]", mode="[bold]e", gpu_type="H[1]00")]
    app = make.app(store)
    async with app.run_test(size=(120, 40)) as pilot:
        await make.settled(pilot, painted)
        for name in (*names[:3], r"a\x1b]0;b", "[/b]", "[bold]e", "H[1]00"):
            assert name in shown(app)


async def test_a_storm_of_sizes(make, told):
    app = make.app(told)
    async with app.run_test(size=(80, 24)) as pilot:
        await make.settled(pilot, painted)
        for width, height in SIZES:
            await pilot.resize_terminal(width, height)
            await pilot.pause()
            assert app.size == Size(width, height)
            small = width < 60 or height < 16
            if small and width >= 20 and height >= 3:
                assert "needs 60×16" in shown(app)
            if not small:
                assert painted(app)
                assert "idle" in shown(app)
                assert "overhead" in shown(app)


async def test_ascii_terminals_get_ascii_only(make, told):
    app = make.app(told, glyphs=ASCII)
    async with app.run_test(size=(120, 40)) as pilot:
        await make.settled(pilot, painted)
        assert shown(app).isascii()


async def test_no_color(make, told, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    app = make.app(told)
    async with app.run_test(size=(80, 24)) as pilot:
        await make.settled(pilot, painted)
        colors = {
            (color.triplet.red, color.triplet.green, color.triplet.blue)
            for y in range(24)
            for segment in app.screen._compositor.render_strips()[y].apply_filter(
                app._filters[0], app.screen.background_colors[0]
            )
            if segment.style and (color := segment.style.color) and color.triplet
        }
        assert colors
        assert all(red == green == blue for red, green, blue in colors)


def test_a_newer_message_replaces_an_older_one():
    assert Polled(None).can_replace(Polled(None))
    assert Failed("a", 0).can_replace(Failed("b", 0))
    assert not Polled(None).can_replace(Failed("a", 0))


def test_painting_waits_for_no_store_library():
    heavy = {"sqlalchemy", "pyarrow", "pandas", "numpy", "duckdb"}
    assert not heavy & imported_by("farebox.tui.app")


def test_the_tui_only_reads():
    sources = {"farebox.engine", "farebox.collector", "farebox.roofline"}
    assert not sources & imported_by("farebox.tui.app, farebox.tui.feed, farebox.tui.plain")


def imported_by(modules: str) -> set[str]:
    """What a fresh interpreter has loaded after importing `modules`."""
    program = f"import sys, {modules}; print(*sys.modules)"
    return set(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    )
