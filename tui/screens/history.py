"""The History page: any window of the store, another one beside it, and the way into a replay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.reactive import reactive

from ..glyphs import Glyphs
from ..messages import Made, Refused
from ..views.history import Historian, HistoryView, Window
from ..widgets.past import LABEL, Past, PastSums
from .desk_page import MARGIN, DeskPage

if TYPE_CHECKING:
    from textual.types import CSSPathType
    from textual.widget import Widget


class HistoryPage(DeskPage):
    """Read when the page opens, and when the window changes."""

    MODE = "history"
    AUTO_FOCUS = "PastSums"
    HINTS = "←→ pan  +- zoom  m mark  Enter replay"
    CSS_PATH: ClassVar[CSSPathType | None] = ["page.tcss", "history.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "pan(-1)", "Earlier"),
        Binding("right,l", "pan(1)", "Later"),
        Binding("plus,equals_sign", "zoom(0.5)", "Zoom in", key_display="+"),
        Binding("minus", "zoom(2)", "Zoom out", key_display="-"),
        Binding("0", "whole", "The whole store"),
        Binding("m", "mark", "Compare with this window"),
        Binding("enter", "replay", "Replay from the left edge"),
    ]

    past: reactive[HistoryView | None] = reactive(None)
    marked: reactive[HistoryView | None] = reactive(None)
    told: reactive[str] = reactive("")
    _window: Window | None = None
    _historian: Historian | None = None

    def body(self, glyphs: Glyphs) -> Iterable[Widget]:
        """Time-lines and sums."""
        self._historian = Historian(self.farebox.desk) if self.farebox.desk else None
        yield Past(glyphs).data_bind(HistoryPage.past, HistoryPage.told)
        yield PastSums(glyphs).data_bind(HistoryPage.past, HistoryPage.marked)

    def action_again(self) -> None:
        """Read the window."""
        window, parts = self._window, max(1, self.size.width - MARGIN - LABEL)
        self.make(window, lambda: self._at_desk().look(window, parts))

    @on(Made)
    def take(self, message: Made) -> None:
        """Show a window, unless another one is wanted by now."""
        if message.of == self._window and isinstance(message.made, HistoryView):
            self.past = message.made
            self.told = message.made.warnings[0] if message.made.warnings else self.told

    @on(Refused)
    def tell(self, message: Refused) -> None:
        """Say why there is nothing to show."""
        self.told = message.words

    def action_pan(self, quarters: int) -> None:
        """Move by a quarter of the window."""
        if self.past is not None:
            self._go(self.past.window.moved(quarters / 4, self.past.whole))

    def action_zoom(self, factor: float) -> None:
        """Show less or more."""
        if self.past is not None:
            self._go(self.past.window.zoomed(factor, self.past.whole))

    def action_whole(self) -> None:
        """Show all there is."""
        self._go(None)

    def action_mark(self) -> None:
        """Keep this window to compare others with; again: compare no more."""
        self.marked = self.past if self.marked is None else None
        self.told = "move on: the marked window stays beside the one that is shown" if self.marked else ""

    def action_replay(self) -> None:
        """Show all pages as they were from the left edge of the window on."""
        if self.past is not None:
            self.farebox.start_replay(self.past.window.from_ns)
            self.farebox.action_page("live")

    def _go(self, window: Window | None) -> None:
        self._window = window
        self.action_again()

    def _at_desk(self) -> Historian:
        if self._historian is None:
            raise LookupError("this screen shows no store of its own, so it has no history")
        return self._historian
