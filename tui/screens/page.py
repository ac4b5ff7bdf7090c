"""A page: a screen that shows the newest snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.reactive import reactive
from textual.screen import Screen

from ..glyphs import Glyphs
from ..line import Line

if TYPE_CHECKING:
    from ..app import FareboxApp
    from ..snapshot import Snapshot


class Page(Screen[None]):
    """The app keeps these three up to date on the pages that are shown; a page's widgets bind to them."""

    snapshot: reactive[Snapshot | None] = reactive(None)
    paused: reactive[bool] = reactive(False)
    notice: reactive[Line | None] = reactive(None)

    @property
    def glyphs(self) -> Glyphs:
        """What this terminal can draw."""
        return cast("FareboxApp", self.app).glyphs

    def on_screen_resume(self) -> None:
        """Catch up when the page comes to the front."""
        cast("FareboxApp", self.app).show_newest(self)
