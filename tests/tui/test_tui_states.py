"""Every page without figures, in every size, and every key of every page."""

from __future__ import annotations

from threading import Event

import pytest
from tui_apps import on_store

from farebox.cli.desk import StoreDesk
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store
from farebox.tui.app import FareboxApp
from farebox.tui.navigation import PAGES

SIZES = [(80, 24), (120, 40), (200, 60)]
OF_THE_TERMINAL = {"ctrl+z", "q"}
"""Keys that end or stop the app; other tests press them."""


class StuckDesk:
    """A desk that does not answer before it is told to, or that only answers that it cannot."""

    def __init__(self, release: Event | None) -> None:
        self._release = release

    def open(self):
        if self._release is not None:
            self._release.wait(60)
        raise OSError("the disk is [bold]gone[/]")


def told(app) -> str:
    """What the screen shows, with neither trailing blanks nor more than one empty line in a row."""
    lines = [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]
    kept = [line for line, before in zip(lines, [None, *lines], strict=False) if line or before]
    return "\n".join(kept)


async def pictures(make, app, is_there) -> dict[str, str]:
    """The pages of an app in all sizes; nothing of them changes any more."""
    found: dict[str, str] = {}
    async with app.run_test(size=SIZES[0]) as pilot:
        for page in PAGES:
            await pilot.press(page.key)
            await make.settled(pilot, lambda a, mode=page.mode: a.current_mode == mode and is_there(a))
            for width, height in SIZES:
                await pilot.resize_terminal(width, height)
                await make.at_rest(pilot)
                found[f"{page.mode} {width}×{height}"] = told(app)
    return found


async def test_pages_of_an_empty_store(make, snapshot, tmp_path):
    create_store(tmp_path / "store").close()
    app = FareboxApp(lambda: LiveReader(tmp_path / "store"), desk=StoreDesk(tmp_path / "store"))

    def is_there(app) -> bool:
        return "no run" in told(app) and (
            app.current_mode not in ("history", "bill") or "nothing is booked yet" in told(app)
        )

    assert await pictures(make, app, is_there) == snapshot


async def test_pages_while_the_store_is_opened(make, snapshot):
    release = Event()

    def open_reader():
        release.wait(60)
        return make.store()

    app = FareboxApp(open_reader, make.feed, desk=StuckDesk(release))
    try:
        assert await pictures(make, app, lambda app: "opening the store" in told(app)) == snapshot
    finally:
        release.set()


async def test_pages_of_a_store_that_cannot_be_read(make, snapshot):
    store = make.store()
    store.error = OSError("the disk is [bold]gone[/]")
    app = make.app(store, desk=StuckDesk(None))

    def is_there(app) -> bool:
        return told(app).count("[bold]gone[/]") == (2 if app.current_mode in ("history", "bill") else 1)

    assert await pictures(make, app, is_there) == snapshot


@pytest.fixture
def acted(monkeypatch):
    """The names of the actions that the app has run, in their order."""
    found: list[str] = []
    run_action = FareboxApp.run_action

    async def note(app, action, namespace=None):
        found.append(action if isinstance(action, str) else action[1])
        return await run_action(app, action, namespace)

    monkeypatch.setattr(FareboxApp, "run_action", note)
    return found


def keys_of(kind: type) -> list[tuple[str, str]]:
    """Keys and actions that a kind of app, page or widget brings itself."""
    ours = [c for c in kind.__mro__ if c.__module__.startswith("farebox") and "BINDINGS" in vars(c)]
    return [(key, bound.action) for c in ours for bound in vars(c)["BINDINGS"] for key in bound.key.split(",")]


async def test_every_key_does_what_it_is_bound_to(make, recorded, acted):
    app = on_store(recorded)
    async with app.run_test(size=(80, 24)) as pilot:
        for page in PAGES:
            await pilot.press(page.key)
            await make.settled(
                pilot, lambda a, mode=page.mode: a.current_mode == mode and a.screen.snapshot is not None
            )
            shown, focused = app.screen, app.focused
            kinds = [*([type(focused)] if focused else []), type(shown), *([FareboxApp] if page is PAGES[0] else [])]
            for key, action in {key: action for kind in kinds for key, action in keys_of(kind)}.items():
                if key not in OF_THE_TERMINAL:
                    acted.clear()
                    await pilot.press(key)
                    assert action in acted, f"{key} on {page.title} ran {acted}, not {action}"
                if (app.screen, app.focused) != (shown, focused):
                    await pilot.press("escape", page.key)
