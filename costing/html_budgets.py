"""The budgets in the HTML report: what teams have spent of their limits, and when those will be reached."""

from __future__ import annotations

from collections.abc import Sequence

from .budgets import BudgetStatus
from .figures import Figures
from .html_charts import bar, safe

UNKNOWN = "–"
HEADINGS = ("spent", "per day", "soft limit", "hard limit", "reached on")


def budgets_section(budgets: Sequence[BudgetStatus]) -> str:
    """A table with a row per budget; nothing without budgets."""
    if not budgets:
        return ""
    head = '<th class="name">team</th><th class="name">period</th><th></th>'
    head += "".join(f"<th>{name}</th>" for name in HEADINGS)
    rows = "".join(map(_row, budgets))
    return f"<h2>Budgets</h2>{scrolling(head, rows)}"


def scrolling(head: str, rows: str) -> str:
    """A table that scrolls where the screen is narrow."""
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(status: BudgetStatus) -> str:
    budget, over = status.budget, status.state in ("above soft", "above hard")
    figures = Figures(budget.currency, 2)
    spent = UNKNOWN if status.spent_micro is None else f"{figures.text(status.spent_micro)} {safe(budget.currency)}"
    amounts = (status.per_day_micro, budget.soft_micro, budget.hard_micro)
    texts = [spent, *(UNKNOWN if amount is None else figures.text(amount) for amount in amounts)]
    texts.append(status.state if over else safe(status.hard_day or status.soft_day or status.reason or UNKNOWN))
    cells = "".join(f"<td>{text}</td>" for text in texts)
    names = "".join(f'<td class="name">{safe(name)}</td>' for name in (budget.team, budget.period))
    style = ' class="over"' if over else ""
    return f'<tr{style}>{names}<td class="bar">{_drawn(status, over=over)}</td>{cells}</tr>'


def _drawn(status: BudgetStatus, *, over: bool) -> str:
    """How much of the hard limit (else of the soft one) is spent."""
    budget = status.budget
    limit = budget.hard_micro if budget.hard_micro is not None else budget.soft_micro
    if not limit or status.spent_micro is None:
        return ""
    return bar("unobserved" if over else "tenant", min(status.spent_micro, limit), limit)
