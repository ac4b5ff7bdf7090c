"""The bottom line: the pages and their numbers, and the keys that work everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..line import Line, Role, width_of
from ..navigation import PAGES
from .figure import Figure

if TYPE_CHECKING:
    from textual.events import Click

    from ..glyphs import Glyphs

ALWAYS = (("p", "Pause", "pause"), ("?", "Help", "help"), ("q", "Quit", "quit"))
HINTS_FROM = 110


class Keys(Figure):
    """One line of pages and keys, in as many words as fit; a click does what the key does."""

    def __init__(self, glyphs: Glyphs, mode: str, hints: str) -> None:
        super().__init__(glyphs)
        self._mode = mode
        self._hints = hints
        self._actions: list[tuple[int, str]] = []

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """The line."""
        line: Line = []
        for number in range(3):
            line = self._line(number)
            if width_of(line) <= width:
                break
        room = width - width_of(line)
        hints = self.glyphs.text(self._hints)
        if hints and width >= HINTS_FROM and room > len(hints) + 3:
            line.append((" " * (room - len(hints)), ""))
            line.append((hints, "label"))
        return [line]

    def on_click(self, event: Click) -> None:
        """Do what the key under the pointer does."""
        for end, action in self._actions:
            if event.x < end:
                self.run_later(action)
                return

    def run_later(self, action: str) -> None:
        """Run an action of the app."""
        self.call_later(self.app.run_action, f"app.{action}")

    def _line(self, brevity: int) -> Line:
        """Everything; less of the keys that work everywhere; and the pages as numbers, but this one."""
        line: Line = []
        self._actions = []
        for page in PAGES:
            here = page.mode == self._mode
            title = f" {page.title}" if here or brevity < 2 else ""
            role: Role = "here" if here else "label"
            line.extend([(f" {page.key}", "here" if here else "key"), (f"{title} ", role)])
            self._actions.append((width_of(line), f"page('{page.mode}')"))
        for key, title, action in ALWAYS[min(brevity, 1) :]:
            told = f" {title} " if brevity < 2 else " "
            line.extend([(f" {key}", "key"), (told, "label")])
            self._actions.append((width_of(line), action))
        return line
