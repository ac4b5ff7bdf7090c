"""What would help: the changes that save most, with the command that shows the figures again."""

from __future__ import annotations

from collections.abc import Sequence

from .. import money, numbers
from ..line import Line, spread
from ..snapshot import Tip
from .figure import Figure


class Tips(Figure):
    """Two lines for each; no line while nothing was advised."""

    DEFAULT_CSS = "Tips { display: none; margin: 0 1; }"

    def watch_snapshot(self) -> None:
        """Come and go."""
        tips = self._tips()
        self.display = bool(tips)
        self.styles.height = 1 + 2 * len(tips)
        self.redraw()

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The change and what it saves, and the command below."""
        told: list[Line] = [[("what would help", "label"), (f" {self.glyphs.rule * max(0, width - 16)}", "faint")]]
        for number, tip in enumerate(self._tips(), 1):
            saved = self.glyphs.text(_saved(tip))
            title = self.glyphs.fit(tip.title, width - len(saved) - 6)
            told.append(spread([(f"{number}  ", "label"), (title, "strong")], [(saved, "money")], width))
            told.append([("   ", ""), (self.glyphs.fit(tip.command, width - 3), "label")])
        return told

    def _tips(self) -> tuple[Tip, ...]:
        return self.snapshot.tips if self.snapshot else ()


def _saved(tip: Tip) -> str:
    if tip.saved_micro is None or tip.currency is None:
        return f"frees {numbers.seconds(tip.freed_gpu_ns)} GPU/month"
    return f"saves {money.sign(tip.currency)}{money.amount(tip.saved_micro, 2)}/month"
