"""The panels of the Live page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.reactive import reactive

from .. import lines
from ..glyphs import Glyphs
from ..line import Line, beside, spread
from ..meters import meters
from .figure import Figure
from .histogram import bars, one_line

if TYPE_CHECKING:
    from ..snapshot import Alert, Snapshot

BESIDE = 105
ROOMY = 8


class HeaderLine(Figure):
    """The top line; the name alone until there is something to tell."""

    paused: reactive[bool] = reactive(False, repaint=False)
    replay: reactive[str] = reactive("", repaint=False)

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """One line."""
        if self.snapshot is None:
            return [[("farebox", "brand"), (self.glyphs.text(f"  {self.replay}"), "warn")]]
        return [lines.header(self.snapshot, width, self.glyphs, self.paused, self.replay)]

    def watch_paused(self) -> None:
        """Say so at once."""
        self.redraw()

    def watch_replay(self) -> None:
        """Never take the past for now."""
        self.redraw()


class Notice(Figure):
    """What went wrong, or what Farebox is waiting for; it takes a line only while there is something to tell."""

    text: reactive[Line | None] = reactive(None, repaint=False)

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The words, shown literally and cut at the edge."""
        return [[(self.glyphs.name(words), role) for words, role in self.text or []]]

    def watch_text(self, text: Line | None) -> None:
        """Come and go."""
        self.display = bool(text)
        self.redraw()


class AlertLine(Figure):
    """The worst alert that the page does not tell by itself, and how many there are; no line while there is none."""

    DEFAULT_CSS = "AlertLine { padding: 0 1; display: none; }"

    def watch_snapshot(self) -> None:
        """Come and go."""
        self.display = bool(_alerts(self.snapshot))
        self.redraw()

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The title, cut at the edge, and where the reason is."""
        found = _alerts(self.snapshot)
        if not found:
            return []
        more = f"  {len(found)} alerts" if len(found) > 1 else ""
        where = f"{more}  7 says why"
        title = self.glyphs.name(found[0].title)
        told = f"{self.glyphs.signs['warn']} {self.glyphs.fit(title, width - len(where) - 2)}"
        return [spread([(told, found[0].severity)], [(where, "label")], width)]


class Meters(Figure):
    """Seats and steps."""

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """As tall as the style sheet says."""
        return meters(self.snapshot, width, height, self.glyphs) if self.snapshot else []


class Costs(Figure):
    """How full the batches were; idle and the verdict; the price of this hour; what batching saves."""

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """Between two rules where there is room; of little room idle gets the first lines."""
        if self.snapshot is None:
            return []
        if height < len(_blocks(self.snapshot, width, self.glyphs)) + 1:
            return _blocks(self.snapshot, width, self.glyphs)[1 : height + 1]
        rule: Line = [(self.glyphs.rule * width, "faint")]
        room = height - 2
        if width >= BESIDE and room >= ROOMY:
            left = max(38, width * 34 // 100)
            told = _airy(self.snapshot, width - left, self.glyphs)
            shown = beside(bars(self.snapshot, left - 2, self.glyphs)[:room], told[:room], left)
        else:
            shown = _blocks(self.snapshot, width, self.glyphs)[:room]
        return [rule, *shown, *([] for _ in range(room - len(shown))), rule]


class TooSmall(Figure):
    """What a terminal sees that is too small for the page."""

    def __init__(self, glyphs: Glyphs, width: int, height: int) -> None:
        super().__init__(glyphs)
        self._needs: Line = [(glyphs.text(f"needs {width}×{height}"), "warn")]

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """How big it must be, in the middle."""
        space = max(0, width - len(self._needs[0][0])) // 2
        return [*([] for _ in range(height // 2)), [(" " * space, ""), *self._needs]]


def _alerts(snapshot: Snapshot | None) -> list[Alert]:
    """All but budgets, which the tenant table tells."""
    return [alert for alert in snapshot.alerts if not alert.key.startswith("budget:")] if snapshot else []


def _blocks(snapshot: Snapshot, width: int, glyphs: Glyphs) -> list[Line]:
    return [one_line(snapshot, width, glyphs), *_airy(snapshot, width, glyphs, gap=0)]


def _airy(snapshot: Snapshot, width: int, glyphs: Glyphs, gap: int = 1) -> list[Line]:
    between: list[Line] = [[] for _ in range(gap)]
    told = [
        *lines.idle(snapshot, width),
        *between,
        *lines.cost(snapshot, width, glyphs),
        *between,
        *lines.saving(snapshot, width),
    ]
    return [[(glyphs.text(text), role) for text, role in line] for line in told]
