"""One tenant: its lengths, tiers, latency, what its cost is made of, and how its requests ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.reactive import reactive

from .. import money, numbers
from ..budgets import role_of, spent_percent
from ..line import Line, Role
from ..numbers import share
from .bar import bar
from .figure import Figure

if TYPE_CHECKING:
    from ..snapshot import BudgetRow, TenantRow
    from ..views.tenants import Detail, Spread, TenantsView

LABEL = 14
BAR = 30


class TenantDetail(Figure):
    """The tenant that is open."""

    DEFAULT_CSS = "TenantDetail { height: 1fr; display: none; }"
    view: reactive[TenantsView | None] = reactive(None, repaint=False)

    def watch_view(self) -> None:
        """Draw what is new."""
        self.redraw()

    def lines(self, width: int, height: int) -> Sequence[Line]:
        """All that is known."""
        detail = self.view.detail if self.view else None
        if detail is None or self.snapshot is None:
            return [[("reading", "label")]]
        lines = [*self._title(detail), [], *self._costs(detail, width), [], *self._requests(detail)]
        return self.spelled(lines)

    def _title(self, detail: Detail) -> list[Line]:
        tiers = ", ".join(self.glyphs.name(row.tier) for row in detail.rows) or "not in this window"
        return [
            [(self.glyphs.name(detail.tenant_id), "brand"), (f"   {tiers}", "label"), ("   Esc goes back", "faint")]
        ]

    def _costs(self, detail: Detail, width: int) -> list[Line]:
        """What its GPU time is made of, and what that costs."""
        s = self.snapshot
        if s is None:
            return []
        used = detail.prefill_gpu_ns + detail.decode_gpu_ns
        part = share(used, s.accounts.total)
        room = min(BAR, width - LABEL - 12)
        lines: list[Line] = [
            [(f"{'GPU time':<{LABEL}}", "label"), (numbers.percent(part), "strong"), (" of the window", "label")],
            self._bar_line("prompts", detail.prefill_gpu_ns, used, room, "prefill"),
            self._bar_line("decoding", detail.decode_gpu_ns, used, room, "decode"),
            *(self._price_line(row) for row in detail.rows),
        ]
        budget = next((row.budget for row in detail.rows if row.budget), None)
        return lines if budget is None else [*lines, self._budget_line(budget, room)]

    def _bar_line(self, title: str, ns: int, whole: int, room: int, role: Role) -> Line:
        part = share(ns, whole)
        filled, empty = bar(part or 0, max(1, room), self.glyphs)
        return [
            (f"{'  ' + title:<{LABEL}}", "label"),
            (filled, role),
            (empty, "faint"),
            (f" {numbers.percent(part)}", "strong"),
        ]

    def _price_line(self, row: TenantRow) -> Line:
        s = self.snapshot
        if s is None:
            return []
        milli = s.unit != "GPU-ms"
        hourly = "" if row.hourly is None else f"{money.sign(s.unit)}{money.amount(row.hourly, 4)}/h  "
        return [
            (f"{self.glyphs.name(row.tier):<{LABEL}}", "label"),
            (hourly, "money"),
            (f"{money.unit_per_1k(s.unit)} per 1k: ", "label"),
            (money.figure(row.per_1k, milli), "strong"),
            (" busy, ", "label"),
            (money.figure(row.per_1k_full, milli), "strong"),
            (" with idle, ", "label"),
            (money.figure(row.per_1k_out, milli), "strong"),
            (" out", "label"),
        ]

    def _budget_line(self, budget: BudgetRow, room: int) -> Line:
        limit = budget.hard_micro or budget.soft_micro or 0
        filled, empty = bar(share(budget.spent_micro or 0, limit) or 0, max(1, room), self.glyphs)
        role: Role = role_of(budget) or "good"
        told = f" {spent_percent(budget)} of {self.glyphs.name(budget.team)}'s budget for {budget.period}"
        return [(f"{'budget':<{LABEL}}", "label"), (filled, role), (empty, "faint"), (told, role_of(budget))]

    def _requests(self, detail: Detail) -> list[Line]:
        """Lengths, latency and ends of its requests."""
        reach = numbers.seconds(detail.kept_ns)
        head = f"{detail.requests:,} requests ended in the last {reach}"
        put_off = f", {detail.preempted:,} were put off the batch" if detail.preempted else ""
        lines: list[Line] = [
            [(head + put_off, "strong")],
            [(f"{'':<{LABEL}}{'p50':>10}{'p99':>10}{'most':>10}", "label")],
            *(
                self._spread_line(title, found, "")
                for title, found in (("prompt", detail.prompt), ("output", detail.output))
            ),
            *(
                self._spread_line(title, found, " ms")
                for title, found in (
                    ("in the queue", detail.queue_ns),
                    ("TTFT", detail.ttft_ns),
                    ("per token", detail.itl_ns),
                )
            ),
            [],
        ]
        for reason, count in detail.reasons:
            role: Role = "bad" if reason in ("error", "rejected") else "warn" if reason == "abort" else "strong"
            told = f"{count:>10,}  {numbers.percent(share(count, detail.requests))}"
            lines.append([(f"{self.glyphs.name(reason):<{LABEL}}", "label"), (told, role)])
        return lines

    def _spread_line(self, title: str, found: Spread | None, unit: str) -> Line:
        if found is None:
            return [(f"{title:<{LABEL}}", "label"), ("       n/a", "label"), ("  no such request ended", "faint")]
        values = (found.p50, found.p99, found.most)
        texts = [numbers.millis(value) if unit else f"{value:,}" for value in values]
        return [
            (f"{title:<{LABEL}}", "label"),
            ("".join(f"{text:>10}" for text in texts), "strong"),
            (unit or " tokens", "label"),
        ]
