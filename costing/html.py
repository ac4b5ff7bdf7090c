"""The report as one HTML file that opens offline, prints well, and can be sent to whoever signs it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction

from .figures import Figures
from .html_budgets import budgets_section, scrolling
from .html_charts import bar, day_chart, safe, strip
from .html_page import html_page
from .idle import IDLE_WORDS
from .line import ACCOUNTS
from .periods import local, zone_of
from .report import Line, Report

UNKNOWN = "–"
WORDS = {
    "tenant": "tenants",
    "underfill": "seats kept empty",
    "idle": "idle",
    "overhead": "overhead",
    "unobserved": "unobserved",
    "correction": "corrections",
}


def to_html(report: Report) -> str:
    """The whole report: totals, a line per group with a bar, days, budgets, and how it was made. No script."""
    figures = Figures.of(report)
    accounts = _by_account(report)
    sections = [
        _header(report, figures),
        _problems(report),
        strip(accounts, figures.text),
        _cards(accounts, figures),
        _lines(report, figures),
        _days(report, figures),
        budgets_section(report.budgets),
        _footer(report),
    ]
    return html_page(f"{_title(report)} {report.period.name}", sections)


def _title(report: Report) -> str:
    return "GPU cost" if report.is_priced else "GPU use"


def _value(report: Report, line: Line) -> int:
    """What a line is billed, or its GPU time."""
    return (line.billed_micro or 0) if report.is_priced else line.gpu_ns


def _kind(account: str) -> str:
    return account if account in ACCOUNTS else "correction"


def _by_account(report: Report) -> dict[str, int]:
    """What each account comes to, in a fixed order; underfill and corrections only where there are any."""
    sums = dict.fromkeys([*ACCOUNTS, "correction"], 0)
    for line in report.lines:
        sums[_kind(line.account)] += _value(report, line)
    return {name: value for name, value in sums.items() if value or name not in ("underfill", "correction")}


def _header(report: Report, figures: Figures) -> str:
    total = figures.text(_value(report, report.total))
    least = "≥ " if report.is_priced and report.total.unrated_gpu_ns else ""
    start, end = (
        local(at, zone_of(report.period.tz)).strftime("%Y-%m-%d %H:%M") for at in (report.from_ns, report.to_ns)
    )
    right = '<p class="verdict">✓ every line adds up to the invoice</p>'
    if report.check():
        right = '<p class="verdict bad">does not add up, see below</p>'
    return (
        f"<header><div><h1>{_title(report)} · {safe(report.period.name)}</h1>"
        f'<p class="period">{start} to {end}, {safe(report.period.tz)}</p></div>'
        f'<div><div class="sum">{least}{total} <small>{safe(figures.unit)}</small></div>{right}</div></header>'
    )


def _problems(report: Report) -> str:
    texts = "<br>".join(safe(problem) for problem in report.check())
    return f'<p class="problems">{texts}</p>' if texts else ""


def _cards(accounts: dict[str, int], figures: Figures) -> str:
    total, texts = sum(accounts.values()), figures.together(list(accounts.values()))
    cards = [
        f'<div class="card"><b>{text}</b><span>{_word(name)} · {_percent(value, total)}</span></div>'
        for (name, value), text in zip(accounts.items(), texts[:-1], strict=True)
    ]
    return f'<div class="cards">{"".join(cards)}</div>'


def _word(account: str) -> str:
    return f'<i class="dot {account}"></i>{WORDS[account]}'


def _percent(value: int, total: int) -> str:
    return f"{float(Fraction(100 * value, total)):.1f} %" if total else UNKNOWN


def _in_order(report: Report) -> list[Line]:
    """Tenants by what they pay, unless time tells a story; then everything else."""
    tenants = [line for line in report.lines if line.account == "tenant"]
    if not {"day", "hour"} & set(report.by):
        tenants.sort(key=lambda line: -_value(report, line))
    return [*tenants, *(line for line in report.lines if line.account != "tenant")]


def _lines(report: Report, figures: Figures) -> str:
    """The table: one row per line, and the total."""
    lines = _in_order(report)
    amounts = figures.together([_value(report, line) for line in lines])
    most = max((_value(report, line) for line in lines if line.account == "tenant"), default=0)
    has_api = any(line.api_micro is not None for line in lines)
    heads = ["requests", "prompt", "cached", "output"]
    heads += ["GPU·h", safe(figures.unit)] if report.is_priced else [figures.unit]
    heads.append(f"{safe(report.unit)} / 1k tokens")
    heads += [f"at API prices, {safe(report.api_currency or '')}"] if has_api else []
    head = "".join(f'<th class="name">{safe(name)}</th>' for name in report.by) + "<th></th>"
    head += "".join(f"<th>{name}</th>" for name in heads)
    hours = Figures(None, 3).together([line.gpu_ns for line in lines])
    rows = [
        _row(report, line, amount, used, _bar(report, line, most), has_api=has_api)
        for line, amount, used in zip([*lines, report.total], amounts, hours, strict=True)
    ]
    return f"<h2>Who pays</h2>{scrolling(head, ''.join(rows))}"


def _bar(report: Report, line: Line, most: int) -> str:
    """A tenant's part beside the one that pays most; what is no tenant's is drawn above the table."""
    return bar("tenant", _value(report, line), most) if line.account == "tenant" else ""


def _row(report: Report, line: Line, amount: str, hours: str, drawn: str, *, has_api: bool) -> str:
    is_total, is_tenant = line is report.total, line.account == "tenant"
    style = "total" if is_total else "" if is_tenant else "other"
    names = "".join(f'<td class="name" title="{name}">{name}</td>' for name in map(safe, _names(report, line)))
    counts = [f"{count:,}" for count in (line.requests, line.prompt_tokens, line.output_tokens)]
    counts.insert(2, _percent(line.cached_tokens, line.prompt_tokens))
    texts = counts if line.rides else [""] * len(counts)
    if report.is_priced:
        texts.append(hours)
    cells = "".join(f"<td>{text}</td>" for text in texts)
    price = _price(report, line) if is_tenant else ""
    api = f"<td>{_api(report, line) if line.rides else ''}</td>" if has_api else ""
    bars = "" if is_total else drawn
    cells += f'<td class="money">{_amount(report, line, amount)}</td><td>{price}</td>{api}'
    return f'<tr class="{style}">{names}<td class="bar">{bars}</td>{cells}</tr>'


def _names(report: Report, line: Line) -> list[str]:
    """What a row is called, in one text per grouping."""
    if line is report.total:
        return ["total", *("" for _ in report.by[1:])]
    names = [report.label(by, key) for by, key in zip(report.by, line.keys, strict=True)]
    if line.account == "tenant":
        return [name or "(none)" for name in names]
    free = names.index("") if "" in names else 0
    names[free] = " · ".join(filter(None, (line.account, names[free])))
    return names


def _amount(report: Report, line: Line, amount: str) -> str:
    if not (report.is_priced and line.unrated_gpu_ns):
        return amount
    return "no rate" if line.billed_micro is None else f"≥ {amount}"


def _price(report: Report, line: Line) -> str:
    price = line.per_1k if report.idle_policy == "separate" else line.per_1k_loaded
    return UNKNOWN if price is None else f"{price:,.{6 if report.is_priced else 3}f}"


def _api(report: Report, line: Line) -> str:
    """What the tokens would cost by the token; never 0 for a price that is not known."""
    if line.api_micro is None:
        return "no price" if line.unpriced_tokens else UNKNOWN
    least = "≥ " if line.unpriced_tokens else ""
    return f"{least}{Figures(report.api_currency, 2).text(line.api_micro)}"


def _days(report: Report, figures: Figures) -> str:
    """A column for each day of the period; nothing for a single day."""
    days = report.period.days()
    if len(days) < 2:
        return ""
    sums: defaultdict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(ACCOUNTS, 0))
    for cell in report.cells:
        if not cell.correction_of:
            billed = (cell.amount_micro or 0) + (cell.idle_micro or 0) if report.is_priced else cell.gpu_ns
            sums[cell.day][cell.account] += billed
    used = [name for name in ACCOUNTS if any(amounts[name] for amounts in sums.values())]
    chart = day_chart([(day.name, sums[day.name]) for day in days], figures.text, f"{figures.unit} by day")
    return f"<h2>Day by day</h2>{chart}{_legend(used)}" if chart else ""


def _legend(accounts: Iterable[str]) -> str:
    entries = "".join(f"<span>{_word(name)}</span>" for name in accounts)
    return f'<p class="legend">{entries}</p>'


def _footer(report: Report) -> str:
    told = (IDLE_WORDS[report.idle_policy], *report.notes())
    notes = "".join(f"<p>{safe(note)}</p>" for note in told)
    return f"<footer><p>How this bill was made</p>{notes}</footer>"
