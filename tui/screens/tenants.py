"""The Tenants page: everybody's tokens, share and cost; one tenant in detail."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.widgets import Input

from ..glyphs import Glyphs
from ..sorting import next_order, order_of
from ..views.tenants import tenants_ask
from ..widgets.tenant_detail import TenantDetail
from ..widgets.tenant_list import TenantList
from .page import Page

if TYPE_CHECKING:
    from textual.types import CSSPathType
    from textual.widget import Widget

    from ..scene import Ask


class TenantsPage(Page):
    """A list that sorts and filters; Enter opens a tenant."""

    MODE = "tenants"
    AUTO_FOCUS = "TenantList"
    HINTS = "s sort  / filter  Enter open"
    CSS_PATH: ClassVar[CSSPathType | None] = ["page.tcss", "tenants.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort(1)", "Sort by the next column"),
        Binding("S", "sort(-1)", "Sort by the column before", show=False),
        Binding("slash", "filter", "Filter by name", key_display="/"),
        Binding("enter", "open", "Open the tenant"),
        Binding("escape", "back", "Back", show=False),
    ]

    order: reactive[str] = reactive("gpu")
    wanted: reactive[str] = reactive("")
    opened: reactive[str | None] = reactive(None)

    def body(self, glyphs: Glyphs) -> Iterable[Widget]:
        """The filter while it is typed, the list, and in its place the tenant that is open."""
        self.set_reactive(TenantsPage.order, order_of(self.farebox.state.sorts.get(self.MODE)).key)
        question = Input(placeholder="part of a name, or a tier", compact=True)
        question.display = False
        yield question
        yield TenantList(glyphs).data_bind(Page.snapshot, Page.view, TenantsPage.order, TenantsPage.wanted)
        yield TenantDetail(glyphs).data_bind(Page.snapshot, Page.view)

    def ask(self) -> Ask:
        """Trends, and the tenant that is open."""
        return tenants_ask(self.opened)

    def action_sort(self, by: int) -> None:
        """Sort by another column; the app remembers it."""
        self.order = next_order(self.order, by).key
        self.farebox.state.sorts[self.MODE] = self.order

    def action_filter(self) -> None:
        """Ask for a part of a name."""
        question = self.query_one(Input)
        question.display = True
        question.focus()

    def action_open(self) -> None:
        """Open the tenant under the cursor."""
        if (row := self.query_one(TenantList).chosen) is not None:
            self.open_tenant(row.tenant_id)

    def action_back(self) -> None:
        """From a tenant to the list, from a filter to everybody."""
        question = self.query_one(Input)
        if self.opened is not None:
            self.opened = None
        elif question.display or self.wanted:
            question.value = ""
            self.wanted = ""
            question.display = False
            self.query_one(TenantList).focus()

    def open_tenant(self, tenant_id: str) -> None:
        """Show one tenant in detail."""
        self.opened = tenant_id

    def watch_opened(self, opened: str | None) -> None:
        """Show the list or the tenant."""
        if not self.is_mounted:
            return
        self.query_one(TenantList).display = opened is None
        self.query_one(TenantDetail).display = opened is not None
        self.wish()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while it is typed."""
        self.wanted = event.value.strip()

    def on_input_submitted(self) -> None:
        """Keep the filter, and go on in the list."""
        self.query_one(Input).display = bool(self.wanted)
        self.query_one(TenantList).focus()
