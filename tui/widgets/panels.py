"""The panels of the Live page, and what frames every page. What draws figures loads with the first snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.reactive import reactive

from ..glyphs import Glyphs
from ..line import Line, spread
from .figure import Figure

if TYPE_CHECKING:
    from ..snapshot import Alert, Snapshot


class HeaderLine(Figure):
    """The top line; the name alone until there is something to tell."""

    paused: reactive[bool] = reactive(False, repaint=False)
    replay: reactive[str] = reactive("", repaint=False)

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """One line."""
        if self.snapshot is None:
            return [[("farebox", "brand"), (self.glyphs.text(f"  {self.replay}"), "warn")]]
        from ..lines import header

        return [header(self.snapshot, width, self.glyphs, self.paused, self.replay)]

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
        told = f"{self.glyphs.signs['warn']} {self.glyphs.fit(found[0].title, width - len(where) - 2)}"
        return [spread([(told, found[0].severity)], [(where, "label")], width)]


class Meters(Figure):
    """Seats and steps."""

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """As tall as the style sheet says."""
        if self.snapshot is None:
            return []
        from ..meters import meters

        return meters(self.snapshot, width, height, self.glyphs)


class Costs(Figure):
    """How full the batches were; idle and the verdict; the price of this hour; what batching saves."""

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """Between two rules where there is room."""
        if self.snapshot is None:
            return []
        from ..costs import costs

        return costs(self.snapshot, width, height, self.glyphs)


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
