"""The Batch page: the bus, seat by seat and step by step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.reactive import reactive

from ..glyphs import Glyphs
from ..views.batch import BatchView, batch_view
from ..widgets.batch import Bus, Riders, StepTitle, Strip
from .page import Page

if TYPE_CHECKING:
    from textual.types import CSSPathType
    from textual.widget import Widget

    from ..scene import Ask


class BatchPage(Page):
    """Who sits in which seat in the newest step, or in one before it while paused."""

    MODE = "batch"
    HINTS = "←→ step  f fill"
    CSS_PATH: ClassVar[CSSPathType | None] = ["page.tcss", "batch.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "walk(1)", "Step back", tooltip="Holds the figures"),
        Binding("right,l", "walk(-1)", "Step forward"),
        Binding("shift+left,H", "walk(10)", "Ten steps back", show=False),
        Binding("shift+right,L", "walk(-10)", "Ten steps forward", show=False),
        Binding("end", "newest", "Newest step", show=False, priority=True),
        Binding("f", "fill", "Fill seats by age or context"),
    ]

    back: reactive[int] = reactive(0)
    fill: reactive[str] = reactive("age")

    def body(self, glyphs: Glyphs) -> Iterable[Widget]:
        """The step, the bus, the strip of steps, the riders."""
        yield StepTitle(glyphs).data_bind(Page.view, BatchPage.back)
        yield Bus(glyphs).data_bind(Page.view, BatchPage.back, BatchPage.fill)
        yield Strip(glyphs).data_bind(Page.view, BatchPage.back)
        yield Riders(glyphs).data_bind(Page.view, BatchPage.back)

    def ask(self) -> Ask:
        """The newest rides."""
        return batch_view

    def action_walk(self, steps: int) -> None:
        """Go back through the last steps, holding the figures; or forward again."""
        if steps > 0 and not self.farebox.paused:
            self.farebox.action_pause()
        rides = self.view.rides if isinstance(self.view, BatchView) else ()
        self.back = max(0, min(self.back + steps, len(rides) - 1))

    def action_newest(self) -> None:
        """Back to the newest step."""
        self.back = 0

    def action_fill(self) -> None:
        """Fill seats by the other measure."""
        self.fill = "context" if self.fill == "age" else "age"

    def watch_paused(self, paused: bool) -> None:
        """Going on means the newest step."""
        if not paused:
            self.back = 0
