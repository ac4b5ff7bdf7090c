"""The Live page: is the bus full, is it moving, who rides, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from ..glyphs import Glyphs
from ..widgets.panels import Costs, Meters
from ..widgets.tenants import Tenants
from .page import Page

if TYPE_CHECKING:
    from textual.types import CSSPathType
    from textual.widget import Widget


class LivePage(Page):
    """What happens right now on one engine. Which panel gets how many lines is up to the style sheet."""

    MODE = "live"
    CSS_PATH: ClassVar[CSSPathType | None] = ["page.tcss", "live.tcss"]

    def body(self, glyphs: Glyphs) -> Iterable[Widget]:
        """The panels from top to bottom."""
        yield Meters(glyphs).data_bind(Page.snapshot)
        yield Costs(glyphs).data_bind(Page.snapshot)
        yield Tenants(glyphs).data_bind(Page.snapshot)
