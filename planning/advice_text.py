"""Advice for people and programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..costing.figures import Figures
from .advise import Advised
from .words import hours_text

if TYPE_CHECKING:
    from rich.console import Console

    from ..events import Advice

NOTHING = "nothing worth doing: no change that was tried saves 1 % of the invoice, or 5 % of the busy time, unharmed"


def render_advice(advised: Advised, console: Console) -> None:
    """Print the advice, the best first, each with its command."""
    from rich.text import Text

    console.print(Text(advised.baseline.text(), style="dim"), soft_wrap=True)
    if not advised.advice:
        console.print(Text(NOTHING, style="bold"), soft_wrap=True)
    for row in advised.advice:
        console.print(Text(f"\n{row.rank}. {row.title}: {saved_text(row)}", style="bold"), soft_wrap=True)
        for name, text in (
            ("why", row.evidence), ("latency", row.effect), ("confidence", row.confidence), ("try", row.command),
        ):  # fmt: skip
            console.print(Text(f"   {name:<11}{text}"), soft_wrap=True)
    if advised.refused:
        console.print(Text("\nnot proposed, although they would save:", style="dim"))
        for refused in advised.refused:
            console.print(Text(f"   {refused.candidate.title}: {refused.why}", style="dim"), soft_wrap=True)
    if advised.missing:
        console.print(Text(f"interrupted: {advised.missing} changes were not tried"), soft_wrap=True)


def saved_text(row: Advice) -> str:
    """What a piece of advice saves in a month."""
    freed = f"frees {hours_text(row.freed_gpu_ns)} busy GPU·h"
    if row.saved_micro is None or row.currency is None:
        return f"{freed} a month (no rate)"
    if not row.saved_micro:
        return f"leaves the invoice as it is, {freed} a month"
    figures = Figures.for_total(row.currency, row.saved_micro)
    return f"saves {figures.text(row.saved_micro)} {row.currency} a month, {freed}"


def advice_json(advised: Advised) -> str:
    """The same, unrounded."""
    whole = {
        "baseline": advised.baseline.text(),
        "advice": [row._asdict() for row in advised.advice],
        "refused": [{"title": each.candidate.title, "why": each.why} for each in advised.refused],
        "tried": advised.tried,
        "missing": advised.missing,
    }
    return json.dumps(whole, indent=2) + "\n"
