"""A comparison as one HTML file that opens offline, in the look of the bills."""

from __future__ import annotations

from datetime import UTC, datetime

from ..costing.figures import Figures
from ..costing.html_charts import bar, safe, strip
from ..costing.html_page import html_page
from ..costing.line import ACCOUNTS
from .comparison import Comparison
from .description import changes_of, promises_of
from .outcome import Outcome
from .rows import WAIT_HEADS, PlanRow, cells_of, rows_of
from .table import USAGE, figures_of, headline, identities
from .traffic import Recorded
from .words import change_text

_EXTRA = """
h3 { margin: 1.2rem 0 .3rem; font-size: .9rem; font-weight: 500; color: var(--soft); } .strip { margin: 0; }
.changes { margin: 0 0 1.4rem; padding-left: 1.2rem; color: var(--soft); } .legend { margin: .3rem 0 2rem; }
tr.before td { border-bottom-color: transparent; } tr.total.after td { border-top: 0; } .usage { width: auto; }
"""


def to_html(comparison: Comparison) -> str:
    """Both bills as bars, a row per tenant and side, how full the GPUs are, and how it was made. No script."""
    figures = figures_of(comparison)
    title = f"What if · {name}" if (name := comparison.scenario.name) else "What if"
    verdict = comparison.problems()
    right = "does not add up, see below" if verdict else "✓ both sides add up"
    header = (
        f'<header><div><h1>{safe(title)}</h1><p class="period">{safe(_what(comparison.recorded))}</p>'
        f'<p class="period">{safe(comparison.baseline.text())}</p></div>'
        f'<div><p class="verdict{" bad" if verdict else ""}">{right}</p></div></header>'
    )
    sections = [
        header,
        f"<h2>{safe(headline(comparison))}</h2>",
        _changes(comparison),
        _bars(comparison, figures),
        _table(comparison, figures),
        _usage(comparison),
        "<footer>" + "".join(f"<p>{safe(t)}</p>" for t in (*comparison.notes(), *identities(comparison))) + "</footer>",
    ]
    return html_page(title, sections, _EXTRA)


def _what(recorded: Recorded) -> str:
    """Which store and time."""
    begin, end = (
        f"{datetime.fromtimestamp(ns // 10**9, UTC):%Y-%m-%d %H:%M}" for ns in (recorded.from_ns, recorded.to_ns)
    )
    return f"{recorded.store.name} · {begin} to {end} UTC · {len(recorded.arrivals):,} requests"


def _changes(comparison: Comparison) -> str:
    """What the scenario changes, and what is promised to whom."""
    told = (*changes_of(comparison.scenario), *promises_of(comparison.scenario))
    return f'<ul class="changes">{"".join(f"<li>{safe(text)}</li>" for text in told)}</ul>'


def _bars(comparison: Comparison, figures: Figures) -> str:
    """One bar per side, as long as its bill beside the dearer one."""
    sides = [(name, _accounts(outcome, figures)) for name, outcome in _sides(comparison)]
    most = max(sum(amounts.values()) for _, amounts in sides)
    return "".join(_bar(name, amounts, most, figures) for name, amounts in sides)


def _bar(name: str, amounts: dict[str, int], most: int, figures: Figures) -> str:
    total = sum(amounts.values())
    names = {"tenant": "tenants"}
    legend = "".join(
        f'<span><i class="dot {account}"></i>{names.get(account, account)} {figures.text(amount)}</span>'
        for account, amount in amounts.items()
    )
    width = 100 * total / most if most else 0
    return (
        f"<h3>{name} · {figures.text(total)} {safe(figures.unit)}</h3>"
        f'<div style="width:{width:.3f}%">{strip(amounts, figures.text)}</div><p class="legend">{legend}</p>'
    )


def _sides(comparison: Comparison) -> tuple[tuple[str, Outcome], tuple[str, Outcome]]:
    return ("before", comparison.before), ("after", comparison.after)


def _accounts(outcome: Outcome, figures: Figures) -> dict[str, int]:
    lines = {account: outcome.bill.account(account) for account in ACCOUNTS}
    values = {
        account: line.gpu_ns if figures.currency is None else line.amount_micro or 0 for account, line in lines.items()
    }
    return {account: value for account, value in values.items() if value}


def _table(comparison: Comparison, figures: Figures) -> str:
    rows = rows_of(comparison)
    values = [side.value(figures) or 0 for row in rows if row.kind == "tenant" for side in (row.before, row.after)]
    unit = safe(comparison.before.bill.unit)
    heads = ("", "requests", safe(figures.unit), f"{unit} / 1k", "with idle", *WAIT_HEADS)
    head = '<th class="name"></th><th></th>' + "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(_row(row, figures, max(values, default=0)) for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _row(row: PlanRow, figures: Figures, most: int) -> str:
    style = {"tenant": "tenant-row", "total": "total"}.get(row.kind, "other")
    sides = ((row.name, "before", row.before), (_moved(row, figures), "after", row.after))
    return "".join(
        f'<tr class="{style} {at}"><td class="name">{safe(name)}</td><td class="bar">'
        f"{bar(row.kind, side.value(figures) or 0, most) if row.kind == 'tenant' else ''}</td><td>{at}</td>"
        f"{''.join(f'<td>{safe(cell)}</td>' for cell in cells_of(side, figures))}</tr>"
        for name, at, side in sides
    )


def _moved(row: PlanRow, figures: Figures) -> str:
    return change_text(row.before.value(figures), row.after.value(figures))


def _usage(comparison: Comparison) -> str:
    """How full the GPUs are, a row per measure."""
    sides = [outcome.usage for _, outcome in _sides(comparison)]
    rows = "".join(
        f'<tr><td class="name">{name}</td>{"".join(f"<td>{text(usage)}</td>" for usage in sides)}</tr>'
        for name, text in USAGE
    )
    head = '<thead><tr><th class="name"></th><th>before</th><th>after</th></tr></thead>'
    return f'<h2>How full the GPUs are</h2><table class="usage">{head}<tbody>{rows}</tbody></table>'
