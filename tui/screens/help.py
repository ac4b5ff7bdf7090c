"""What every figure of a page means, and which keys it has."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.geometry import Size
from textual.screen import ModalScreen

from ..glyphs import Glyphs
from ..line import Line
from ..navigation import page_of
from ..widgets.figure import Figure
from ..words import terms_of

if TYPE_CHECKING:
    from textual.app import ComposeResult

TERM = 14
MEANING_MIN = 10


class Terms(Figure):
    """The terms and their meanings, wrapped to the width there is; the container scrolls."""

    DEFAULT_CSS = "Terms { height: auto; }"

    def __init__(self, glyphs: Glyphs, mode: str) -> None:
        super().__init__(glyphs)
        self._mode = mode

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """All of them."""
        return help_lines(self._mode, width, self.glyphs)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many lines as the words take."""
        return len(help_lines(self._mode, width, self.glyphs))


class HelpScreen(ModalScreen[None]):
    """Every term of one page."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q", "dismiss", "Back")]

    def __init__(self, glyphs: Glyphs, mode: str) -> None:
        super().__init__()
        self._glyphs = glyphs
        self._mode = mode

    def compose(self) -> ComposeResult:
        """One scrolling list."""
        with VerticalScroll(id="help"):
            yield Terms(self._glyphs, self._mode)


def help_lines(mode: str, width: int, glyphs: Glyphs) -> list[Line]:
    """The terms of a page and their meanings in two columns."""
    title = f"{page_of(mode).title}: what the figures mean"
    lines: list[Line] = [[(title, "brand"), ("   Esc goes back", "label")], []]
    for term, meaning in terms_of(mode):
        for number, text in enumerate(wrap(glyphs.text(meaning), max(MEANING_MIN, width - TERM - 2))):
            name = glyphs.text(term) if number == 0 else ""
            lines.append([(f"{name:<{TERM}}  ", "strong"), (text, "")])
    return lines
