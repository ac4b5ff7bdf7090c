"""The Bill page: one period under one method; keys change the method and the total stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from textual import on
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.widgets import Input

from ..errors_told import words
from ..glyphs import Glyphs
from ..line import Line
from ..messages import Made, Refused
from ..views.bill import GRAINS, GROUPS, IDLES, POLICIES, BillView, Choice, Clerk, write_bill
from ..widgets.bill_lines import BillLines, Method
from ..widgets.tips import Tips
from .desk_page import MARGIN, DeskPage
from .page import Page

if TYPE_CHECKING:
    from textual.types import CSSPathType
    from textual.widget import Widget

Value = TypeVar("Value")


class BillPage(DeskPage):
    """Made when the page opens, when a key changes the method, and on r."""

    MODE = "bill"
    AUTO_FOCUS = "BillLines"
    HINTS = "←→ period  e export  x explain  r again"
    CSS_PATH: ClassVar[CSSPathType | None] = ["page.tcss", "bill.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "grain", "All time, months or days"),
        Binding("left,h", "back(1)", "Period before"),
        Binding("right,l", "back(-1)", "Period after"),
        Binding("b", "group", "Group by"),
        Binding("i", "idle", "Who pays for idle"),
        Binding("o", "policy", "How a step is split"),
        Binding("e", "export", "Export"),
        Binding("x", "explain", "Explain the change since the period before"),
        Binding("escape", "leave", "Back to the bill", show=False),
    ]

    choice: reactive[Choice] = reactive(Choice())
    bill: reactive[BillView | None] = reactive(None)
    told: reactive[tuple[Line, ...]] = reactive(())
    _clerk: Clerk | None = None

    def body(self, glyphs: Glyphs) -> Iterable[Widget]:
        """The method, a question for a file name, the lines, what would help."""
        self._clerk = Clerk(self.farebox.desk) if self.farebox.desk else None
        question = Input(compact=True)
        question.display = False
        yield Method(glyphs).data_bind(BillPage.choice, BillPage.bill)
        yield question
        yield BillLines(glyphs).data_bind(BillPage.told)
        yield Tips(glyphs).data_bind(Page.snapshot)

    def on_resize(self) -> None:
        """The table has other columns in another width."""
        if self.bill is not None:
            self.count()

    def watch_choice(self, before: Choice, now: Choice) -> None:
        """Count under the new method."""
        if before != now:
            self.count()

    def count(self) -> None:
        """Make the bill."""
        choice, width = self.choice, self.size.width - MARGIN
        self.make(choice, lambda: self._at_desk().bill(choice, width))

    @on(Made)
    def take(self, message: Made) -> None:
        """Show a bill or an explanation, unless something else is wanted by now."""
        if message.of != self.choice:
            return
        if isinstance(message.made, BillView):
            self.bill = message.made
            self.told = message.made.lines
        else:
            self.told = (*message.made, [("Esc goes back to the bill", "faint")])

    @on(Refused)
    def tell(self, message: Refused) -> None:
        """Say why there is nothing to show."""
        self.told = ([(message.words, "bad")],)

    def action_again(self) -> None:
        """Read the store again."""
        if self._clerk is not None:
            self._clerk.forget()
        self.count()

    def action_grain(self) -> None:
        """All time, months or days."""
        self.choice = self.choice._replace(grain=following(GRAINS, self.choice.grain), back=0)

    def action_back(self, by: int) -> None:
        """The period before, or the one after."""
        most = self.bill.periods - 1 if self.bill and self.choice.grain != "all" else 0
        self.choice = self.choice._replace(back=max(0, min(self.choice.back + by, most)))

    def action_group(self) -> None:
        """Group by something else."""
        self.choice = self.choice._replace(by=following(GROUPS, self.choice.by))

    def action_idle(self) -> None:
        """Let others pay for idle time."""
        self.choice = self.choice._replace(idle=following(IDLES, self.choice.idle))

    def action_policy(self) -> None:
        """Split steps by another rule."""
        self.choice = self.choice._replace(policy=following(POLICIES, self.choice.policy))

    def action_explain(self) -> None:
        """Why it differs from the period before."""
        self.told = ([("comparing with the period before", "label")],)
        choice, width = self.choice, self.size.width - MARGIN
        self.make(choice, lambda: self._at_desk().explain(choice, width))

    def action_export(self) -> None:
        """Ask for a file name; its ending is the format."""
        if self.bill is None:
            return
        question = self.query_one(Input)
        question.value = f"bill-{self.bill.report.period.name.replace('/', '--').replace(':', '')}.csv"
        question.border_title = ""
        question.display = True
        question.focus()

    def action_leave(self) -> None:
        """Close the question, or go from the explanation to the bill."""
        question = self.query_one(Input)
        if question.display:
            question.display = False
            self.query_one(BillLines).focus()
        elif self.bill is not None:
            self.told = self.bill.lines

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Write the file."""
        if self.bill is None or not event.value.strip():
            return
        path = Path(event.value.strip()).expanduser()
        try:
            write_bill(self.bill.report, path)
        except Exception as error:
            self.notify(self.glyphs.name(words(error)), severity="error", markup=False)
            return
        self.action_leave()
        self.notify(self.glyphs.name(f"written: {path}"), markup=False)

    def _at_desk(self) -> Clerk:
        if self._clerk is None:
            raise LookupError("this screen shows no store of its own, so there is nothing to bill")
        return self._clerk


def following(values: Sequence[Value], value: Value) -> Value:
    """The value after one; after the last comes the first."""
    return values[(values.index(value) + 1) % len(values)]
