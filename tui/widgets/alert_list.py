"""The list of alerts, and the cause and next step of the one under the cursor."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from ..line import Line
from .listing import Listing

if TYPE_CHECKING:
    from ..snapshot import Alert

INDENT = 4
MEASURE = 110
"""Long lines are hard to read: text is no wider."""


class AlertList(Listing):
    """Every alert with its cause and next step, as far as they fit; titles never make way."""

    def count(self) -> int:
        """One for each alert."""
        return len(self._alerts())

    def empty(self) -> str:
        """Nothing is good news, once something was looked at."""
        return "nothing needs attention" if self.snapshot else ""

    def row(self, index: int, width: int) -> Line:
        """The title."""
        alert = self._alerts()[index]
        sign = self.glyphs.signs["lost" if alert.severity == "bad" else "warn"]
        word = "now " if alert.severity == "bad" else "soon"
        return [(f"{sign} {word} ", alert.severity), (self.glyphs.fit(alert.title, width - 8), "strong")]

    def foot(self, width: int) -> list[Line]:
        """Cause and next step of the alert that is meant."""
        found = self._alerts()
        if not found:
            return []
        alert = found[min(self.cursor, len(found) - 1)]
        rule: Line = [(self.glyphs.rule * width, "faint")]
        return [rule, *self._told("why", alert.cause, width), *self._told("next", alert.step, width)]

    def copied(self, index: int) -> str:
        """All of it."""
        alert = self._alerts()[index]
        return f"{alert.title}. {alert.cause} {alert.step}"

    def _told(self, title: str, text: str, width: int) -> list[Line]:
        lines = wrap(self.glyphs.name(text), max(20, min(width, MEASURE) - 7))
        return [[(f"{title if i == 0 else '':<7}", "label"), (line, "")] for i, line in enumerate(lines)]

    def _alerts(self) -> tuple[Alert, ...]:
        return self.snapshot.alerts if self.snapshot else ()
