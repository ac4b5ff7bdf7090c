"""What the pages look like. After a wanted change: `pytest tests/tui --snapshot-update`, and look at it."""

from __future__ import annotations

import pytest
from tui_apps import on_store

from farebox.events import BUDGET_STATES, TENANTS
from farebox.tui.state import State

WIDE = (200, 60)
ALL = [(80, 24), (120, 40), WIDE]


@pytest.fixture
def resting(make):
    """An app on a store, and what to run before its picture is taken."""

    def rest(store, seen, open_app=make.app, **options):
        app = open_app(store, **options)

        async def run_before(pilot) -> None:
            await make.settled(pilot, seen)
            await make.at_rest(pilot)

        return app, run_before

    return rest


@pytest.mark.parametrize("size", ALL)
def test_live(snap_compare, resting, told, size):
    app, run_before = resting(told, lambda a: a.screen.snapshot is not None)
    assert snap_compare(app, terminal_size=size, run_before=run_before)


def test_live_light(snap_compare, resting, told):
    app, run_before = resting(told, lambda a: a.screen.snapshot is not None)
    app.theme = "textual-light"
    assert snap_compare(app, terminal_size=(120, 40), run_before=run_before)


def test_smallest(snap_compare, resting, told):
    app, run_before = resting(told, lambda a: a.screen.snapshot is not None)
    assert snap_compare(app, terminal_size=(60, 16), run_before=run_before)


def test_many_tenants_without_a_rate(snap_compare, resting, make):
    store = make.story(20, tuple((f"tenant-{i:02d}", "standard", 1 + i % 2) for i in range(20)))
    store.rate_list = []
    app, run_before = resting(store, lambda a: a.screen.snapshot is not None)
    assert snap_compare(app, terminal_size=(80, 24), run_before=run_before)


def test_budgets(snap_compare, resting, make):
    store = make.story(90)
    store.settings_of[TENANTS] = [
        make.tenant("support-chat", "Support"),
        make.tenant("code-completion", "Platform"),
        make.tenant("nightly-eval", "Research"),
    ]
    store.settings_of[BUDGET_STATES] = [
        make.budget("3.56", "3", "4", state="above soft", hard_day="2026-01-18"),
        make.budget("812.40", None, "2000", team="Platform"),
        make.budget("1200", "600", "1000", team="Research", period="2026", state="above hard"),
    ]
    app, run_before = resting(store, lambda a: a.screen.snapshot is not None)
    assert snap_compare(app, terminal_size=(120, 40), run_before=run_before)


@pytest.mark.parametrize("size", ALL[:2])
def test_empty(snap_compare, resting, store, size):
    app, run_before = resting(store, lambda a: a.screen.notice and "no run" in a.screen.notice[0][0])
    assert snap_compare(app, terminal_size=size, run_before=run_before)


@pytest.mark.parametrize("size", ALL[:2])
def test_error(snap_compare, resting, store, size):
    store.error = OSError("the disk is [bold]gone[/]")
    app, run_before = resting(store, lambda a: a.screen.notice and len(a.screen.notice) == 2)
    assert snap_compare(app, terminal_size=size, run_before=run_before)


@pytest.mark.parametrize("size", ALL)
@pytest.mark.parametrize("page", ["batch", "tenants"])
def test_pages(snap_compare, resting, told, size, page):
    app, run_before = resting(told, lambda a: a.screen.view is not None, state=State(page))
    assert snap_compare(app, terminal_size=size, run_before=run_before)


@pytest.mark.parametrize("size", ALL)
def test_alerts(snap_compare, resting, told, size):
    app, run_before = resting(told, lambda a: a.screen.snapshot is not None, state=State("alerts"))
    assert snap_compare(app, terminal_size=size, run_before=run_before)


@pytest.mark.parametrize("size", ALL)
def test_gpus(snap_compare, resting, make, told, size):
    store = make.store()
    vars(store).update(vars(told))
    at = make.START + 80 * make.S
    slices = [make.gpu(2 + i, at, device=0, parent_uuid="GPU-0", util_pct=None, power_mw=None) for i in range(2)]
    slices[1] = slices[1]._replace(active_ppm=714_000, shared_by=("chat-0", "chat-1"))
    lost = make.gpu(1, at - 30 * make.S, state="lost", util_pct=None, missing='{"util_pct": "GPU is lost"}')
    store.gpu_list = [*(make.gpu(0, at - s * make.S, util_pct=100 - s) for s in range(30, -1, -1)), *slices, lost]
    store.gpu_list.sort(key=lambda sample: sample.at_ns)
    app, run_before = resting(store, lambda a: a.screen.view is not None, state=State("gpu"))
    assert snap_compare(app, terminal_size=size, run_before=run_before)


def test_tenant_detail(snap_compare, resting, make, told):
    app, settle = resting(told, lambda a: a.screen.view is not None, state=State("tenants"))

    async def run_before(pilot) -> None:
        await settle(pilot)
        await pilot.press("j", "enter")
        await make.settled(pilot, lambda a: a.screen.view.detail is not None)
        await make.at_rest(pilot)

    assert snap_compare(app, terminal_size=(80, 24), run_before=run_before)


@pytest.mark.parametrize("size", ALL)
@pytest.mark.parametrize(("page", "done"), [("bill", "bill"), ("history", "past")])
def test_pages_of_the_whole_store(snap_compare, resting, recorded, page, done, size):
    def seen(app) -> bool:
        return app.screen.snapshot is not None and getattr(app.screen, done) is not None

    app, run_before = resting(recorded, seen, on_store, state=State(page))
    assert snap_compare(app, terminal_size=size, run_before=run_before)
