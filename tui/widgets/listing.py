"""A list with a cursor: only the rows in view are made, so ten thousand scroll as smoothly as ten."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import Binding, BindingType
from textual.reactive import reactive

from ..line import Line, Span, exactly, plain
from .figure import Figure

if TYPE_CHECKING:
    from textual.events import Click

    from ..app import FareboxApp
    from ..glyphs import Glyphs

FAR = 1 << 40


class Listing(Figure, can_focus=True):
    """Head, rows and foot. A kind of list says how many rows there are, and what is in each."""

    DEFAULT_CSS = "Listing { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup,ctrl+b", "move_page(-1)", "Page up", show=False),
        Binding("pagedown,ctrl+f", "move_page(1)", "Page down", show=False),
        Binding("home,g", f"move({-FAR})", "First", show=False),
        Binding("end,G", f"move({FAR})", "Last", show=False),
        Binding("c,y", "copy", "Copy", show=False),
    ]

    cursor: reactive[int] = reactive(0, repaint=False)
    """The row that is meant."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self._first = 0

    def count(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def row(self, index: int, width: int) -> Line:
        """One row in `width` cells."""
        raise NotImplementedError

    def head(self, width: int) -> list[Line]:
        """What stands above the rows."""
        return []

    def foot(self, width: int) -> list[Line]:
        """What stands below the rows."""
        return []

    def empty(self) -> str:
        """What to say when there is no row."""
        return ""

    def copied(self, index: int) -> str:
        """A row as it is copied."""
        return " ".join(plain(self.row(index, 200)).split())

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The rows around the cursor, between head and foot."""
        head, foot = self.head(width), self.foot(width)
        count = self.count()
        room = max(0, height - len(head) - len(foot))
        if not count:
            nothing: list[Line] = [[(line, "label")] for line in wrap(self.glyphs.text(self.empty()), max(1, width))]
            return [*head, *nothing, *foot]
        shown = min(count, room)
        at = min(max(self.cursor, 0), count - 1)
        self._first = max(min(self._first, at, count - shown), at - shown + 1, 0)
        rows = [self._painted(i, at, width) for i in range(self._first, self._first + shown)]
        return [*head, *rows, *foot]

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self.cursor = max(0, min(self.cursor + rows, self.count() - 1))

    def action_move_page(self, pages: int) -> None:
        """Move the cursor by what is in view."""
        self.action_move(pages * max(1, self.size.height - len(self.head(self.size.width)) - 2))

    def action_copy(self) -> None:
        """Copy the row that is meant."""
        if self.count():
            cast("FareboxApp", self.app).copy(self.copied(min(self.cursor, self.count() - 1)))

    def on_mouse_scroll_down(self) -> None:
        """The wheel."""
        self.action_move(1)

    def on_mouse_scroll_up(self) -> None:
        """The wheel."""
        self.action_move(-1)

    def on_click(self, event: Click) -> None:
        """The row under the pointer is meant."""
        index = self._first + event.y - len(self.head(self.size.width))
        if 0 <= index < self.count():
            self.cursor = index

    def watch_cursor(self) -> None:
        """Draw the cursor where it is now."""
        self.redraw()

    def on_focus(self) -> None:
        """Show the cursor."""
        self.redraw()

    def on_blur(self) -> None:
        """Show the cursor less."""
        self.redraw()

    def _painted(self, index: int, at: int, width: int) -> Line:
        line = self.row(index, width)
        if index != at:
            return line
        return [_under_cursor(span) for span in exactly(line, width)]


def _under_cursor(span: Span) -> Span:
    return span[0], "cursor"
