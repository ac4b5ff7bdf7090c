"""A figure: a widget that draws lines from a snapshot, and redraws only those that changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment
from textual.geometry import Region
from textual.reactive import reactive
from textual.strip import Strip
from textual.style import Style
from textual.widget import Widget

from ..glyphs import Glyphs
from ..line import Line, Role, exactly

if TYPE_CHECKING:
    from rich.style import Style as RichStyle

    from ..snapshot import Snapshot


STYLES: dict[Role, str] = {
    "label": "$foreground 65%",
    "strong": "bold",
    "good": "$text-success",
    "warn": "$text-warning",
    "bad": "bold $text-error",
    "prefill": "$text-secondary",
    "decode": "$text-primary",
    "money": "bold $text-success",
    "brand": "bold $text-primary",
    "faint": "$foreground 30%",
    "here": "bold $foreground on $primary",
    "key": "bold $text-accent",
    "cursor": "$block-cursor-foreground on $block-cursor-background",
    "who0": "$text-primary",
    "who1": "$text-warning",
    "who2": "$text-success",
    "who3": "$text-error",
    "who4": "$text-accent",
    "who5": "$text-secondary",
}
"""Roles in the theme's colours. As component classes of every figure they took half the time of the first frame."""


class Figure(Widget):
    """Draws what `lines` gives, each role in its style."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "Figure { height: 1; }"

    snapshot: reactive[Snapshot | None] = reactive(None, repaint=False)

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._lines: list[Line] = []
        self._styles: dict[Role, RichStyle] = {}

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """What to draw in `width` × `height` cells; further lines are not shown."""
        raise NotImplementedError

    def spelled(self, lines: Iterable[Line]) -> list[Line]:
        """Our own words, with the signs that the terminal has."""
        return [[(self.glyphs.text(text), role) for text, role in line] for line in lines]

    def watch_snapshot(self) -> None:
        """Draw the new snapshot."""
        self.redraw()

    def on_resize(self) -> None:
        """Draw for the new size."""
        self.redraw()

    def redraw(self) -> None:
        """Make the lines anew and repaint those that differ."""
        width, height = self.size
        made = [exactly(line, width) for line in self.lines(width, height)[:height]] if width and height else []
        made += [[] for _ in range(height - len(made))]
        before, self._lines = self._lines, made
        changed = [y for y, line in enumerate(made) if y >= len(before) or before[y] != line]
        if changed:
            self.refresh(*(Region(0, y, width, 1) for y in changed))

    def render_line(self, y: int) -> Strip:
        """Paint one line. Nothing in it is read as markup."""
        width, usual = self.size.width, self.visual_style.rich_style
        if y >= len(self._lines):
            return Strip.blank(width, usual)
        styled = [Segment(text, self._style(role) if role else usual) for text, role in self._lines[y] if text]
        return Strip(styled).adjust_cell_length(width, usual)

    def notify_style_update(self) -> None:
        """Take the colours of a new theme."""
        self._styles.clear()
        super().notify_style_update()

    def _style(self, role: Role) -> RichStyle:
        if role not in self._styles:
            self._styles[role] = (self.visual_style + Style.parse(STYLES[role])).rich_style
        return self._styles[role]
