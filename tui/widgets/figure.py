"""A figure: a widget that draws lines from a snapshot, and redraws only those that changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from textual.geometry import Region
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from ..glyphs import Glyphs
from ..line import Line, exactly

if TYPE_CHECKING:
    from ..snapshot import Snapshot


class Figure(Widget):
    """Draws what `lines` gives. Roles become component classes, so that colours come from the style sheet."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "figure--label",
        "figure--strong",
        "figure--good",
        "figure--warn",
        "figure--bad",
        "figure--prefill",
        "figure--decode",
        "figure--money",
        "figure--brand",
        "figure--faint",
        "figure--here",
        "figure--key",
        "figure--cursor",
        "figure--who0",
        "figure--who1",
        "figure--who2",
        "figure--who3",
        "figure--who4",
        "figure--who5",
    }
    DEFAULT_CSS = """
    Figure {
        height: 1;
        .figure--label { color: $foreground 65%; }
        .figure--strong { text-style: bold; }
        .figure--good { color: $text-success; }
        .figure--warn { color: $text-warning; }
        .figure--bad { color: $text-error; text-style: bold; }
        .figure--prefill { color: $text-secondary; }
        .figure--decode { color: $text-primary; }
        .figure--money { color: $text-success; text-style: bold; }
        .figure--brand { color: $text-primary; text-style: bold; }
        .figure--faint { color: $foreground 30%; }
        .figure--here { background: $primary; color: $foreground; text-style: bold; }
        .figure--key { color: $text-accent; text-style: bold; }
        .figure--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
        .figure--who0 { color: $text-primary; }
        .figure--who1 { color: $text-warning; }
        .figure--who2 { color: $text-success; }
        .figure--who3 { color: $text-error; }
        .figure--who4 { color: $text-accent; }
        .figure--who5 { color: $text-secondary; }
    }
    """

    snapshot: reactive[Snapshot | None] = reactive(None, repaint=False)

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._lines: list[Line] = []

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
        styled = [
            Segment(text, self.get_component_rich_style(f"figure--{role}") if role else usual)
            for text, role in self._lines[y]
            if text
        ]
        return Strip(styled).adjust_cell_length(width, usual)
