"""The tenant table: as many rows as fit between its head and its foot, the others by scrolling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.reactive import reactive

from ..line import Line
from .figure import Figure

if TYPE_CHECKING:
    from ..board import Board
    from ..snapshot import Snapshot


class Tenants(Figure, can_focus=True):
    """One line per tenant and tier, those in which nobody rode, and a budget to worry about.

    Only the lines in view are made.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_by(-1)", "Up", show=False),
        Binding("down,j", "scroll_by(1)", "Down", show=False),
        Binding("pageup", "scroll_by(-10)", "Page up", show=False),
        Binding("pagedown", "scroll_by(10)", "Page down", show=False),
        Binding("home", "scroll_by(-100000)", "First", show=False),
        Binding("end", "scroll_by(100000)", "Last", show=False),
    ]

    first: reactive[int] = reactive(0, repaint=False)
    """The first row in view."""

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """Head, rows and foot. The last row in view says how many more there are below it."""
        if self.snapshot is None:
            return []
        board, foot = self._table(self.snapshot, width)
        count = len(self.snapshot.tenants)
        room = min(count, max(0, height - 1 - len(foot)))
        first = min(self.first, count - room)
        rows = [board.row(i) for i in range(first, first + room)]
        below = count - first - room
        if below and rows:
            rows[-1] = [(f"{self.glyphs.signs['more']} {below + 1} more", "label")]
        return [board.head(), *rows, *foot]

    def action_scroll_by(self, rows: int) -> None:
        """Move the view."""
        hidden = len(self.snapshot.tenants) - self._room() if self.snapshot else 0
        self.first = max(0, min(self.first + rows, hidden))

    def on_mouse_scroll_down(self) -> None:
        """The wheel."""
        self.action_scroll_by(1)

    def on_mouse_scroll_up(self) -> None:
        """The wheel."""
        self.action_scroll_by(-1)

    def watch_first(self) -> None:
        """Draw the rows that came into view."""
        self.redraw()

    def _table(self, snapshot: Snapshot, width: int) -> tuple[Board, list[Line]]:
        """The table and what stands below its rows."""
        from ..board import Board
        from ..budgets import budget_line

        board = Board(snapshot, width, self.glyphs)
        told = budget_line(snapshot, width, self.glyphs)
        return board, [*board.foot(), *([told] if told else [])]

    def _room(self) -> int:
        if self.snapshot is None:
            return 0
        _, foot = self._table(self.snapshot, self.size.width)
        return min(len(self.snapshot.tenants), max(0, self.size.height - 1 - len(foot)))
