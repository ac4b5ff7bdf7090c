"""The list of tenants: sorted, filtered, with everybody's trend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.reactive import reactive

from ..board import Board
from ..line import Line, plain
from ..sorting import arranged, order_of
from .listing import Listing
from .timeline import timeline

if TYPE_CHECKING:
    from ..snapshot import Snapshot, TenantRow
    from ..views.tenants import TenantsView

TREND_ROOM = 12


class TenantList(Listing):
    """One line per tenant and tier, and those of idle time and the like, which no filter hides."""

    view: reactive[TenantsView | None] = reactive(None, repaint=False)
    order: reactive[str] = reactive("gpu", repaint=False)
    wanted: reactive[str] = reactive("", repaint=False)
    _made: tuple[Snapshot, int, Board] | None = None
    _arranged: tuple[Snapshot, str, str, list[int]] | None = None

    def watch_view(self) -> None:
        """Draw the new trends."""
        self.redraw()

    def watch_order(self) -> None:
        """Sort anew; the cursor stays on its line number."""
        self.redraw()

    def watch_wanted(self) -> None:
        """Filter anew."""
        self.cursor = 0
        self.redraw()

    @property
    def chosen(self) -> TenantRow | None:
        """The tenant under the cursor."""
        numbers = self._numbers()
        if self.snapshot is None or not numbers:
            return None
        return self.snapshot.tenants[numbers[min(self.cursor, len(numbers) - 1)]]

    def count(self) -> int:
        """Tenants that the filter leaves."""
        return len(self._numbers())

    def empty(self) -> str:
        """Why there is none."""
        if self.snapshot is None:
            return ""
        return "no tenant has that in its name" if self.wanted else "nobody rode in this window"

    def head(self, width: int) -> list[Line]:
        """Titles; the one sorted by has a sign."""
        board = self._board(width)
        if board is None:
            return []
        return [[*board.head(), (" trend", "label")]]

    def row(self, index: int, width: int) -> Line:
        """One tenant."""
        board = self._board(width)
        if board is None or self.snapshot is None:
            return []
        number = self._numbers()[index]
        return [*board.row(number), *self._trend(self.snapshot.tenants[number])]

    def foot(self, width: int) -> list[Line]:
        """Time in which nobody rode, and what is shown of how many."""
        board = self._board(width)
        if board is None or self.snapshot is None:
            return []
        total = len(self.snapshot.tenants)
        told = f"{self.count():,} of {total:,} tenants" if self.wanted else f"{total:,} tenants"
        sorted_by = f", by {order_of(self.order).title}"
        return [*board.foot(), [(self.glyphs.text(told + sorted_by), "faint")]]

    def copied(self, index: int) -> str:
        """The row's words, without the trend."""
        board = self._board(200)
        return " ".join(plain(board.row(self._numbers()[index])).split()) if board else ""

    def _trend(self, tenant: TenantRow) -> Line:
        values = self.view.trends.get((tenant.tenant_id, tenant.tier), ()) if self.view else ()
        drawn = timeline(values, TREND_ROOM - 2, 1, max(values, default=0), self.glyphs)
        return [("  " + drawn[0], "good")]

    def _board(self, width: int) -> Board | None:
        """The table of this snapshot at this width."""
        if self.snapshot is None:
            return None
        if self._made is None or self._made[0] is not self.snapshot or self._made[1] != width:
            self._made = self.snapshot, width, Board(self.snapshot, width - TREND_ROOM, self.glyphs, bars=False)
        return self._made[2]

    def _numbers(self) -> list[int]:
        """The rows to show, in order."""
        s = self.snapshot
        if s is None:
            return []
        made = self._arranged
        if made is None or made[0] is not s or made[1:3] != (self.order, self.wanted):
            made = s, self.order, self.wanted, arranged(s.tenants, order_of(self.order), self.wanted)
            self._arranged = made
        return made[3]
