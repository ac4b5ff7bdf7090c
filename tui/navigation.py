"""The pages of the app: their numbers, names, and where each is loaded from when it is opened."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import PurePath

    from textual.screen import Screen

SCREENS = Path(__file__).with_name("screens")


class PageSpec(NamedTuple):
    """A page: `mode` is Textual's name for it and the module in `screens`, `key` opens it."""

    mode: str
    title: str
    key: str
    summary: str

    def open(self) -> Screen[None]:
        """Load the page's module and make the page; the first frame waits for none but the first page."""
        module = import_module(f".screens.{self.mode}", __package__)
        return getattr(module, f"{self.mode.capitalize()}Page")()

    @property
    def sheets(self) -> list[str | PurePath]:
        """The style sheets that the page reads."""
        return [SCREENS / "page.tcss", SCREENS / f"{self.mode}.tcss"]


PAGES = (
    PageSpec("live", "Live", "1", "Is the batch full, is it moving, what is idle, what it costs"),
    PageSpec("batch", "Batch", "2", "Who rides in which seat, who got on and off, step by step"),
    PageSpec("tenants", "Tenants", "3", "Tokens, GPU share and cost of every tenant; Enter opens one"),
    PageSpec("gpu", "GPU", "4", "Devices and slices: busy time, memory, power, clocks, roofline"),
    PageSpec("history", "History", "5", "Any window of the store: zoom, pan, compare, replay"),
    PageSpec("bill", "Bill", "6", "What a period costs, under any policy; export; explain two periods"),
    PageSpec("alerts", "Alerts", "7", "What needs attention, why, and the next step"),
)
FIRST = PAGES[0].mode


def page_of(mode: str) -> PageSpec:
    """The page of a mode."""
    return next(page for page in PAGES if page.mode == mode)


def openers() -> dict[str, str | Callable[[], Screen[None]]]:
    """Textual's modes."""
    return {page.mode: page.open for page in PAGES}
