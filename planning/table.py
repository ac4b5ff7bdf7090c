"""A comparison as a table for terminals."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..costing.figures import Figures
from .comparison import Comparison
from .outcome import Usage
from .rows import WAIT_HEADS, PlanRow, cells_of, rows_of
from .words import UNKNOWN, change_text, hours_text, percent_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

USAGE: tuple[tuple[str, Callable[[Usage], str]], ...] = (
    ("no step", lambda usage: percent_text(usage.no_step)),
    ("empty seats", lambda usage: percent_text(usage.empty_seats)),
    ("compute idle in steps", lambda usage: percent_text(usage.compute_idle)),
    ("bandwidth used in steps", lambda usage: percent_text(usage.bandwidth_used)),
    ("occupancy", lambda usage: percent_text(usage.occupancy)),
    ("riders", lambda usage: UNKNOWN if usage.mean_running is None else f"{usage.mean_running:.1f}"),
    ("preemptions", lambda usage: f"{usage.preemptions:,}"),
    ("GPU·h up", lambda usage: hours_text(usage.wall_gpu_ns)),
)
"""How full the GPUs are, idle in three ways first: what is told, and as which text."""


def render(comparison: Comparison, console: Console) -> None:
    """Print the baseline's error, what is saved, a row per tenant and side, how full GPUs are, and the identities."""
    from rich.text import Text

    console.print(Text(comparison.baseline.text(), style="dim"), soft_wrap=True)
    console.print(Text(headline(comparison), style="bold"), soft_wrap=True)
    for note in comparison.notes():
        console.print(Text(note), soft_wrap=True)
    console.print()
    console.print(_lines(comparison))
    console.print(_usage(comparison))
    for text in identities(comparison):
        console.print(Text(text, style="dim"), soft_wrap=True)


def figures_of(comparison: Comparison) -> Figures:
    """How amounts are written; GPU-hours where nothing has a rate."""
    bill = comparison.before.bill
    return Figures.for_total(bill.currency if bill.is_priced else None, comparison.before.total_micro or 0)


def headline(comparison: Comparison) -> str:
    """One sentence: what the invoice and the busy time do."""
    figures, saved, busy = figures_of(comparison), comparison.saved_micro, comparison.saved_busy_micro
    before, after = comparison.before, comparison.after
    if saved is None or busy is None:
        used = change_text(before.steps.busy_gpu_ns, after.steps.busy_gpu_ns)
        up = change_text(before.usage.wall_gpu_ns, after.usage.wall_gpu_ns)
        return f"GPU time up {up}, in steps {used}"
    moves = _in_a_month(comparison.monthly(saved), figures.currency or "")
    return (
        f"invoice {figures.text(before.total_micro or 0)} → {figures.text(after.total_micro or 0)} {figures.unit}"
        f" ({change_text(before.total_micro, after.total_micro)}; {moves} in a month of 730 h),"
        f" of it busy {figures.text(before.busy_micro or 0)} → {figures.text(after.busy_micro or 0)}"
        f" ({change_text(before.busy_micro, after.busy_micro)})"
    )


def _in_a_month(saved: int, currency: str) -> str:
    """What a month's invoice does, `saved` in micro-units."""
    if not saved:
        return "nothing saved"
    amount = Figures.for_total(currency, abs(saved)).text(abs(saved))
    return f"saves {amount}" if saved > 0 else f"costs {amount} more"


def identities(comparison: Comparison) -> list[str]:
    """That the lines of both sides sum to the GPU time that engines were up, and to the invoice."""
    texts: list[str] = []
    for name, outcome in (("before", comparison.before), ("after", comparison.after)):
        bill = outcome.bill
        off = "adds up" if not bill.check() else f"is {bill.residual_gpu_ns:,} GPU·ns off"
        texts.append(f"{name}: Σ lines {bill.total.gpu_ns:,} = wall × GPUs {bill.wall_gpu_ns:,} GPU·ns: {off}")
    return texts


def _lines(comparison: Comparison) -> Table:
    from rich.table import Table
    from rich.text import Text

    figures, unit = figures_of(comparison), comparison.before.bill.unit
    table = Table(box=None, pad_edge=False, header_style="bold", collapse_padding=True)
    table.add_column("")
    for head in ("", "requests", figures.unit, f"{unit}/1k", "with idle", *WAIT_HEADS):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows_of(comparison):
        style = "bold" if row.kind == "total" else "" if row.kind == "tenant" else "dim"
        for side, name, at in ((row.before, row.name, "before"), (row.after, _moved(row), "after")):
            cells = [name, at, *cells_of(side, figures)]
            table.add_row(*(Text(cell) for cell in cells), style=style)
    return table


def _moved(row: PlanRow) -> str:
    before, after = row.before, row.after
    if before.amount_micro is None or after.amount_micro is None:
        return f"  {change_text(before.gpu_ns, after.gpu_ns)}"
    return f"  {change_text(before.amount_micro, after.amount_micro)}"


def _usage(comparison: Comparison) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    for name, _ in USAGE:
        table.add_column(name, justify="right")
    for at, outcome in (("before", comparison.before), ("after", comparison.after)):
        table.add_row(at, *(text(outcome.usage) for _, text in USAGE))
    return table
