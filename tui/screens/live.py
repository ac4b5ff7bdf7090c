"""The Live page: is the bus full, is it moving, who rides, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.lazy import Lazy
from textual.widgets import Footer

from ..widgets.panels import Costs, HeaderLine, Meters, Notice, TooSmall
from ..widgets.tenants import Tenants
from .page import Page

if TYPE_CHECKING:
    from textual.app import ComposeResult

MIN_WIDTH, MIN_HEIGHT = 60, 16


class LivePage(Page):
    """What happens right now on one engine. Which panel gets how many lines is up to the style sheet."""

    CSS_PATH = "live.tcss"
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 (declared by Textual as an instance variable)
        (0, "-cramped"),
        (MIN_WIDTH, "-narrow"),
        (78, "-normal"),
        (110, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-flat"),
        (MIN_HEIGHT, "-short"),
        (22, "-medium"),
        (34, "-tall"),
        (50, "-towering"),
    ]

    def compose(self) -> ComposeResult:
        """The panels from top to bottom. The footer comes after the first paint: its keys work before."""
        glyphs = self.glyphs
        yield HeaderLine(glyphs).data_bind(LivePage.snapshot, LivePage.paused)
        yield Notice(glyphs).data_bind(text=LivePage.notice)
        yield Meters(glyphs).data_bind(LivePage.snapshot)
        yield Costs(glyphs).data_bind(LivePage.snapshot)
        yield Tenants(glyphs).data_bind(LivePage.snapshot)
        yield TooSmall(glyphs, MIN_WIDTH, MIN_HEIGHT)
        yield Lazy(Footer())
