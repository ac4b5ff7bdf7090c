"""What `farebox run --fleet` prints at its end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from .output import show
from .summary import count_requests, percent, span, where_to_go

if TYPE_CHECKING:
    from rich.console import Console

    from ..costing.endpoint_summary import EndpointSummary
    from ..costing.report import Report
    from ..costing.run_summary import Quantiles

_HOUR_NS = 3_600 * 10**9
_HEAD = (
    "endpoint",
    "engines",
    "runs",
    "GPU·h",
    "busy",
    "idle",
    "load",
    "riding",
    "output",
    "TTFT p50/p99",
    "TPOT p50/p99",
)


def print_fleet(summaries: Sequence[EndpointSummary], bill: Report, place: Path, price_commands: Sequence[str]) -> None:
    """Print the figures of every endpoint, the last being their total, the bill, and where to go on."""
    show(lambda console: _draw(summaries, bill, place, price_commands, console))


def _draw(
    summaries: Sequence[EndpointSummary], bill: Report, place: Path, price_commands: Sequence[str], console: Console
) -> None:
    from ..costing.table import render

    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, name in enumerate(_HEAD):
        table.add_column(name, justify="right" if number else "left")
    for summary in summaries:
        table.add_row(*(Text(cell) for cell in _row(summary)))
    console.print(table)
    for summary in summaries:
        console.print(Text(f"{summary.name}: {count_requests(summary.requests)} requests", style="dim"))
    console.print()
    render(bill, console)
    console.print()
    if price_commands:
        console.print(Text("example prices of the fleet file, used by nothing; to make them rates of this store:"))
        console.print(Text("\n".join(f"  {command}" for command in price_commands), style="dim"))
    where_to_go(place, console)


def _row(summary: EndpointSummary) -> tuple[str, ...]:
    return (
        summary.name,
        f"{summary.engines}",
        f"{summary.runs}",
        f"{summary.wall_gpu_ns / _HOUR_NS:.3f}",
        *(
            percent(part, summary.wall_gpu_ns)
            for part in (summary.busy_gpu_ns, summary.idle_gpu_ns, summary.load_gpu_ns)
        ),
        "–" if summary.mean_running is None else f"{summary.mean_running:.1f}",
        f"{summary.output_tokens:,}",
        _pair(summary.ttft),
        _pair(summary.tpot),
    )


def _pair(values: Quantiles | None) -> str:
    return "–" if values is None else f"{span(values.p50_ns)} / {span(values.p99_ns)}"
