"""A page that asks the desk: what it shows is made of the whole store, in a worker of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual import work
from textual.binding import Binding, BindingType

from ..errors_told import words
from ..messages import Made, Refused
from .page import Page

MARGIN = 2


class DeskPage(Page):
    """Made when the page opens, for the store has grown, and on r. Who is one takes `Made` and `Refused`."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("r", "again", "Read the store again")]

    def on_screen_resume(self) -> None:
        """Read anew, besides what every page does."""
        self.action_again()

    @work(thread=True, exclusive=True, group="desk", exit_on_error=False)
    def make(self, of: Any, maker: Callable[[], Any]) -> None:
        """Make something for the wish `of`, or tell why not; in a worker."""
        try:
            self.post_message(Made(of, maker()))
        except Exception as error:  # whatever goes wrong behind the desk is told on the page
            self.post_message(Refused(words(error)))

    def action_again(self) -> None:
        """Read the store again."""
        raise NotImplementedError
