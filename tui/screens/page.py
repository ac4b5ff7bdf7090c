"""A page: a screen that shows the newest snapshot, and a view of its own where it needs more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.reactive import reactive
from textual.screen import Screen

from ..glyphs import Glyphs
from ..line import Line
from ..widgets.keys import Keys
from ..widgets.panels import AlertLine, HeaderLine, Notice, TooSmall

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.widget import Widget

    from ..app import FareboxApp
    from ..scene import Ask
    from ..snapshot import Snapshot

MIN_WIDTH, MIN_HEIGHT = 60, 16


class Page(Screen[None]):
    """The app keeps these five up to date on the page in front; a page's widgets bind to them."""

    MODE: ClassVar[str]
    HINTS: ClassVar[str] = ""
    """The page's own keys in a few words."""
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

    snapshot: reactive[Snapshot | None] = reactive(None, repaint=False)
    paused: reactive[bool] = reactive(False, repaint=False)
    notice: reactive[Line | None] = reactive(None, repaint=False)
    view: reactive[Any] = reactive(None, repaint=False)
    replay: reactive[str] = reactive("", repaint=False)
    """How fast the past is shown; empty: it is now."""

    def compose(self) -> ComposeResult:
        """Header, notice, the page itself, the worst alert and the keys."""
        glyphs = self.glyphs
        yield HeaderLine(glyphs).data_bind(Page.snapshot, Page.paused, Page.replay)
        yield Notice(glyphs).data_bind(text=Page.notice)
        yield TooSmall(glyphs, MIN_WIDTH, MIN_HEIGHT)
        alert, keys = AlertLine(glyphs).data_bind(Page.snapshot), Keys(glyphs, self.MODE, self.HINTS)
        for widget in (*self.body(glyphs), alert, keys):
            widget.add_class("body")
            yield widget

    is_asking = False
    """Whether the page waits for a view that it has just wished for."""

    def body(self, glyphs: Glyphs) -> Iterable[Widget]:
        """What stands between header and keys."""
        raise NotImplementedError

    def ask(self) -> Ask | None:
        """What the worker should make for this page, besides the snapshot; None: the snapshot is enough."""
        return None

    @property
    def farebox(self) -> FareboxApp:
        """The app."""
        return cast("FareboxApp", self.app)

    @property
    def glyphs(self) -> Glyphs:
        """What this terminal can draw."""
        return self.farebox.glyphs

    def on_screen_resume(self) -> None:
        """Catch up when the page comes to the front."""
        self.farebox.show_newest(self)
        self.wish()

    def wish(self) -> None:
        """Tell the worker what this page wants now."""
        self.farebox.wish(self)
