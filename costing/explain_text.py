"""An explanation for people and programs: a headline that names the main cause, a compact table, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .causes import cause_text, named, percent
from .effects import Effect
from .explanation import Change, Explanation, sum_effects
from .periods import local, utc_text, zone_of
from .report import Report

STEADY = Fraction(1, 20)
"""Requests that moved less than this are as forecast."""
SHOWN = 12
"""So many tenants get a row of their own, those that changed most; the rest share one, to stay on one screen."""
UNKNOWN = "–"


def headline(explanation: Explanation) -> str:
    """One or two sentences: how far the bill moved, and the change that moved it most in that direction."""
    sentences = [_moved(explanation)]
    cause = main_cause(explanation)
    if cause is not None:
        change, effect = cause
        amount = explanation.figures.signed(change.effects[effect])
        sentences.append(f"Main cause: {cause_text(explanation, change, effect)} ({amount}).")
    return " ".join(sentences)


def main_cause(explanation: Explanation) -> tuple[Change, Effect] | None:
    """The change and its effect that moved the bill most in the direction it went; None when nothing moved."""
    sign = 1 if explanation.difference >= 0 else -1
    pairs: list[tuple[Change, Effect]] = [
        (change, effect) for change in explanation.changes for effect in change.effects
    ]
    return max(pairs, key=lambda pair: sign * pair[0].effects[pair[1]], default=None)


def render(explanation: Explanation, console: Console) -> None:
    """Print the headline and a table of effects: a row for each tenant and account, the total last."""
    console.print(Text(headline(explanation), style="bold"), soft_wrap=True)
    for told in explanation.notes:
        console.print(Text(told), soft_wrap=True)
    console.print()
    console.print(_table(explanation))
    before, after = (_days(report) for report in (explanation.a, explanation.b))
    note = f"Before: {before}. After: {after}. Each effect holds what stands left of it as changed; the sum is exact."
    console.print(Text(note, style="dim"))


def _days(report: Report) -> str:
    zone = zone_of(report.period.tz)
    start, end = (local(at, zone).strftime("%Y-%m-%d %H:%M") for at in (report.from_ns, report.to_ns))
    return f"{start} to {end}"


def _table(explanation: Explanation) -> Table:
    used: list[Effect] = list(explanation.effects)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(explanation.by, no_wrap=True)
    for heading in ("before", "after", "change", *used):
        table.add_column(heading.replace(" ", "\n"), justify="right", vertical="bottom")
    tenants = [change for change in explanation.changes if change.account == "tenant"]
    for change in tenants[:SHOWN]:
        _add_row(explanation, table, named(change), _amounts([change]), change.effects, used)
    if rest := tenants[SHOWN:]:
        _add_row(explanation, table, f"{len(rest):,} others", _amounts(rest), sum_effects(rest), used)
    for change in explanation.changes:
        if change.account != "tenant":
            _add_row(explanation, table, named(change), _amounts([change]), change.effects, used)
    table.add_section()
    _add_row(explanation, table, "total", _amounts(explanation.changes), explanation.effects, used, style="bold")
    return table


def _amounts(changes: Sequence[Change]) -> tuple[int, int]:
    return sum(change.amount_before for change in changes), sum(change.amount_after for change in changes)


def _add_row(
    explanation: Explanation,
    table: Table,
    name: str,
    amounts: tuple[int, int],
    effects: dict[Effect, int],
    used: list[Effect],
    style: str = "",
) -> None:
    texts = [explanation.figures.text(amount) for amount in amounts]
    texts.append(explanation.figures.signed(amounts[1] - amounts[0]))
    texts += [explanation.figures.signed(effects[effect]) if effect in effects else UNKNOWN for effect in used]
    table.add_row(Text(name), *(Text(text) for text in texts), style=style)


def _moved(explanation: Explanation) -> str:
    unit = explanation.figures.unit
    before, after = explanation.amount_before, explanation.amount_after
    bill = f"{explanation.figures.text(after)} {unit} after {explanation.figures.text(before)}"
    the_bill = "So far the bill" if explanation.is_provisional else "The bill"
    if after == before:
        return f"{the_bill} is the same: {bill}."
    side = "more" if after > before else "less"
    amount = percent(abs(after - before), before) if before else explanation.figures.text(abs(after - before))
    moved = f"{the_bill} is {amount} {side}: {bill}"
    old, new = explanation.requests()
    if old and abs(new - old) < STEADY * old:
        return f"{moved}, with {'as many' if new == old else f'nearly as many ({new:,} for {old:,})'} requests."
    return f"{moved}, with {new:,} requests after {old:,}."


def to_json(explanation: Explanation) -> str:
    """The explanation as one JSON object; amounts are integers in `unit`."""
    return json.dumps(_document(explanation), indent=2, ensure_ascii=False) + "\n"


def _document(explanation: Explanation) -> dict[str, Any]:
    return {
        "headline": headline(explanation),
        "notes": explanation.notes,
        "provisional": explanation.is_provisional,
        "unit": explanation.unit,
        "by": explanation.by,
        "periods": [{"from": utc_text(r.from_ns), "to": utc_text(r.to_ns)} for r in (explanation.a, explanation.b)],
        "requests": explanation.requests(),
        "before": explanation.amount_before,
        "after": explanation.amount_after,
        "difference": explanation.difference,
        "effects": explanation.effects,
        "changes": [
            {
                "account": change.account,
                "name": change.name,
                "before": change.amount_before,
                "after": change.amount_after,
                "difference": change.difference,
                "effects": change.effects,
            }
            for change in explanation.changes
        ],
    }
