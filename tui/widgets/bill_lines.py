"""A bill on the screen: its method and its total, and the lines."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from textual.reactive import reactive

from ..glyphs import Glyphs
from ..line import Line, exactly, flow, width_of
from ..views.bill import BillView, Choice
from .figure import Figure
from .listing import Listing


class Method(Figure):
    """Which period, grouping and policies, each with the key that changes it; and the total, which stands."""

    DEFAULT_CSS = "Method { height: 3; }"
    choice: reactive[Choice] = reactive(Choice(), repaint=False)
    bill: reactive[BillView | None] = reactive(None, repaint=False)

    def watch_choice(self) -> None:
        """Show what was chosen at once."""
        self.redraw()

    def watch_bill(self) -> None:
        """Show the new total."""
        self.redraw()

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """Keys and values, then the total."""
        c = self.choice
        period = c.grain if c.grain != "all" else "all time"
        back = f", {c.back} back" if c.back else ""
        items = [
            _item("d", "period", period + back),
            _item("b", "by", ", ".join(c.by)),
            _item("i", "idle", c.idle),
            _item("o", "policy", c.policy),
        ]
        lines = flow("bill", items, width, 6, gap=3)
        total = self.bill.total if self.bill else "…"
        told: Line = [(f"{'total':<6}", "label"), (total, "money")]
        if self.bill is not None and self.bill.choice != c:
            told.append(("   counting", "warn"))
        if self.bill is not None:
            told.extend(("   does not add up: " + problem, "bad") for problem in self.bill.problems)
        return self.spelled([*lines, told])


class BillLines(Listing):
    """The printed lines, or the words of an explanation or an error, with a cursor that copies."""

    told: reactive[tuple[Line, ...]] = reactive((), repaint=False)

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs)
        self._folded: list[Line] = []

    def watch_told(self) -> None:
        """Draw the new lines."""
        self.redraw()

    def redraw(self) -> None:
        """Fold the lines to the width there is, once for all rows."""
        self._folded = self._fold(self.size.width)
        super().redraw()

    def count(self) -> int:
        """Lines, folded to the width."""
        return len(self._folded)

    def empty(self) -> str:
        """Until the first bill is there."""
        return "adding up"

    def row(self, index: int, width: int) -> Line:
        """One line."""
        return self._folded[index]

    def _fold(self, width: int) -> list[Line]:
        lines: list[Line] = []
        for line in self.told:
            named: Line = [(self.glyphs.text(self.glyphs.name(text)), role) for text, role in line]
            if width_of(named) <= width or not named or width < 20:
                lines.append(exactly(named, width))
                continue
            text, role = named[0]
            lines.extend([(part, role)] for part in wrap(text, width, subsequent_indent="  "))
        return lines


def _item(key: str, name: str, value: str) -> Line:
    return [(f"{key} ", "key"), (f"{name} ", "label"), (value, "strong")]
