"""What `farebox run` prints at its end."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from .output import show

if TYPE_CHECKING:
    from rich.console import Console

    from ..costing.report import Report
    from ..costing.run_summary import Quantiles, RunSummary


_MODES = {"continuous": "continuous batching", "static": "static batches", "none": "one at a time"}


def print_summary(summary: RunSummary, bill: Report, place: Path) -> None:
    """Print the figures of a run, its tenants and where to go on."""
    show(lambda console: _draw(summary, bill, place, console))


def _draw(summary: RunSummary, bill: Report, place: Path, console: Console) -> None:
    from ..costing.table import render

    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim")
    facts.add_column()
    for label, value in _facts(summary):
        facts.add_row(label, Text(value))
    console.print(facts)
    console.print()
    render(bill, console)
    console.print()
    where_to_go(place, console)


def where_to_go(place: Path, console: Console) -> None:
    """Print where it was recorded, and the commands that show it."""
    console.print(Text(f"recorded in {place}"))
    path = shlex.quote(str(place))
    console.print(Text(f"  farebox top {path}\n  farebox report {path}", style="dim"))


def _facts(summary: RunSummary) -> list[tuple[str, str]]:
    of_seats = "" if summary.max_num_seqs is None else f" of {summary.max_num_seqs} seats"
    riding = "no step" if summary.mean_running is None else f"{summary.mean_running:.1f}{of_seats}"
    busy, idle = (percent(part, summary.wall_ns) for part in (summary.busy_ns, summary.idle_ns))
    cached = f" ({summary.cached_tokens:,} from the cache)" if summary.cached_tokens else ""
    return [
        ("run", f"{_MODES[summary.mode]} · {summary.model} · {summary.gpus}×{summary.gpu_type}"),
        ("requests", count_requests(summary.requests)),
        ("tokens", f"{summary.prompt_tokens:,} prompt{cached}, {summary.output_tokens:,} output"),
        ("steps", f"{summary.steps:,}, {summary.preemptions:,} preemptions"),
        ("wall clock", f"{_duration(summary.wall_ns)}: busy {busy}, idle {idle}"),
        ("riding", f"{riding} on average while it ran"),
        ("first token", _quantiles(summary.ttft)),
        ("per token", _quantiles(summary.tpot)),
    ]


def count_requests(by_reason: dict[str, int]) -> str:
    """Requests, and in brackets how they ended."""
    total = sum(by_reason.values())
    parts = ", ".join(f"{count:,} {reason}" for reason, count in sorted(by_reason.items()))
    return f"{total:,} ({parts})" if parts else "0"


def percent(part: int, whole: int) -> str:
    """A part of a whole; `n/a` of nothing."""
    return f"{100 * part / whole:.1f} %" if whole else "n/a"


def _duration(ns: int) -> str:
    seconds = ns // 10**9
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _quantiles(values: Quantiles | None) -> str:
    if values is None:
        return "n/a (no tokens)"
    return f"p50 {span(values.p50_ns)}, p99 {span(values.p99_ns)}"


def span(ns: int) -> str:
    """A span in the unit that people would use: milliseconds, seconds, minutes."""
    if ns < 10**9:
        return f"{ns / 1e6:.1f} ms"
    return f"{ns / 1e9:.2f} s" if ns < 120 * 10**9 else f"{ns / 60e9:.1f} min"
