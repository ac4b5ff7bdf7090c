"""The Alerts page: what needs attention, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from ..glyphs import Glyphs
from ..widgets.alert_list import AlertList
from ..widgets.tips import Tips
from .page import Page

if TYPE_CHECKING:
    from textual.types import CSSPathType
    from textual.widget import Widget


class AlertsPage(Page):
    """The list, the worst first."""

    MODE = "alerts"
    HINTS = "c copies"
    CSS_PATH: ClassVar[CSSPathType | None] = ["page.tcss", "alerts.tcss"]

    def body(self, glyphs: Glyphs) -> Iterable[Widget]:
        """The list, and what would help."""
        yield AlertList(glyphs).data_bind(Page.snapshot)
        yield Tips(glyphs).data_bind(Page.snapshot)
