"""A sweep for people and programs: a table with the knee and the rise, JSON, a chart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, NamedTuple

from ..costing.figures import Figures
from ..costing.html_charts import HEIGHT, LEFT, WIDTH, safe
from ..costing.html_page import html_page
from .sweep import Point, Sweep
from .words import percent_text, wait_text

if TYPE_CHECKING:
    from rich.console import Console

_TOP, _BOTTOM = 20, 40
_NAME_WIDTH, _NAME_HEIGHT = 90, 12
"""Points nearer to each other than this share their name."""
_EXTRA = "circle { fill: var(--tenant); } polyline { fill: none; stroke: var(--tenant); stroke-width: 2; }"


def render_sweep(sweep: Sweep, console: Console) -> None:
    """Print the curve as a table, with what marks the knee and the rise."""
    from rich.table import Table
    from rich.text import Text

    console.print(Text(baseline_text(sweep), style="dim"), soft_wrap=True)
    figures = _figures(sweep)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in _heads(sweep, figures):
        table.add_column(head, justify="right")
    table.add_column("")
    for at, point in enumerate(sweep.points):
        table.add_row(*_cells(point, figures), mark(sweep, at))
    console.print(table)
    if sweep.missing:
        console.print(Text(f"interrupted: {', '.join(sweep.missing)} not done"), soft_wrap=True)


def baseline_text(sweep: Sweep) -> str:
    """The line above the curve."""
    return "baseline: interrupted before it was replayed" if sweep.baseline is None else sweep.baseline.text()


def mark(sweep: Sweep, at: int) -> str:
    """What is remarkable about a point."""
    point = sweep.points[at]
    same = f"not limiting: never more than {point.most_riders:,} riders, as with {point.same_as}"
    marks = [
        same if point.same_as is not None else "",
        "knee: more saves little" if at == sweep.knee else "",
        "cheapest" if at == sweep.cheapest else "",
        "dearer again: preempted work is done twice" if at == sweep.rises else "",
    ]
    return ", ".join(filter(None, marks))


def _figures(sweep: Sweep) -> Figures:
    return Figures.for_total(sweep.currency, max((point.cost for point in sweep.points), default=0))


def _heads(sweep: Sweep, figures: Figures) -> tuple[str, ...]:
    """Names of the `_cells`."""
    money = (f"busy {figures.unit}", f"up {figures.unit}")
    return sweep.key, *money, "TTFT p50", "p99", "TPOT p99", "seats", "preempted"


def _cells(point: Point, figures: Figures) -> list[str]:
    ttft_p50, ttft_p99, _, tpot_p99 = point.waits.latencies
    priced = figures.currency is not None
    total = point.total_micro if priced else point.wall_gpu_ns
    return [
        point.value,
        figures.text(point.cost),
        "–" if total is None else figures.text(total),
        wait_text(ttft_p50),
        wait_text(ttft_p99),
        wait_text(tpot_p99),
        percent_text(point.occupancy),
        f"{point.preemptions:,}",
    ]


def sweep_json(sweep: Sweep) -> str:
    """Everything that the table shows, unrounded."""
    points = [
        point._asdict()
        | {
            "waits": point.waits._asdict()
            | {k: None if (q := getattr(point.waits, k)) is None else asdict(q) for k in ("ttft", "tpot")}
        }
        for point in sweep.points
    ]
    names = {name: None if at is None else sweep.points[at].value for name, at in _marks(sweep).items()}
    whole = {
        "baseline": None if sweep.baseline is None else asdict(sweep.baseline) | {"text": sweep.baseline.text()},
        "key": sweep.key,
        "currency": sweep.currency,
        "points": points,
        **names,
        "missing": list(sweep.missing),
    }
    return json.dumps(whole, indent=2) + "\n"


def _marks(sweep: Sweep) -> dict[str, int | None]:
    return {"knee": sweep.knee, "cheapest": sweep.cheapest, "rises": sweep.rises}


def sweep_html(sweep: Sweep) -> str:
    """The curve of cost against p99 TTFT as a self-contained page."""
    figures = _figures(sweep)
    heads = "".join(f"<th>{safe(head)}</th>" for head in (*_heads(sweep, figures), ""))
    rows = "".join(
        "<tr>" + "".join(f"<td>{safe(cell)}</td>" for cell in (*_cells(point, figures), mark(sweep, at))) + "</tr>"
        for at, point in enumerate(sweep.points)
    )
    title = f"Sweep of {sweep.key}"
    sections = [
        f'<header><div><h1>{safe(title)}</h1><p class="period">{safe(baseline_text(sweep))}</p></div></header>',
        f"<h2>Busy cost ({safe(figures.unit)}) against p99 TTFT</h2>{_chart(sweep, figures)}",
        f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>',
    ]
    return html_page(title, sections, _EXTRA)


class _Place(NamedTuple):
    """A point of the chart, its name beside it and what is said when a pointer rests on it."""

    x: float
    y: float
    name: str
    title: str


def _chart(sweep: Sweep, figures: Figures) -> str:
    """Cost upwards, p99 TTFT to the right, both from 0."""
    known = [(at, point, point.waits.ttft.p99_ns) for at, point in enumerate(sweep.points) if point.waits.ttft]
    if not known:
        return ""
    longest, dearest = max(ns for _, _, ns in known), max(point.cost for _, point, _ in known) or 1
    places = [
        _Place(
            LEFT + ns / longest * (WIDTH - LEFT - 120),
            HEIGHT - _BOTTOM - point.cost / dearest * (HEIGHT - _BOTTOM - _TOP),
            f"{point.value} {mark(sweep, at).partition(':')[0]}".strip(),
            f"{point.value}: {figures.text(point.cost)} {figures.unit}, p99 TTFT {wait_text(ns)}",
        )
        for at, point, ns in known
    ]
    line = " ".join(f"{place.x:.1f},{place.y:.1f}" for place in places)
    dots = "".join(
        f'<circle cx="{each.x:.1f}" cy="{each.y:.1f}" r="4"><title>{safe(each.title)}</title></circle>'
        for each in places
    )
    names = "".join(f'<text x="{x + 3:.1f}" y="{y + 16:.1f}">{safe(name)}</text>' for x, y, name in _names(places))
    floor = HEIGHT - _BOTTOM
    axes = (
        f'<line x1="{LEFT}" x2="{WIDTH}" y1="{floor}" y2="{floor}"/><line x1="{LEFT}" x2="{LEFT}" y1="0" y2="{floor}"/>'
        f'<text x="{WIDTH}" y="{HEIGHT - 8}" text-anchor="end">p99 TTFT, up to {wait_text(longest)}</text>'
        f'<text x="{LEFT - 6}" y="{_TOP}" text-anchor="end">{safe(figures.text(dearest))}</text>'
        f'<text x="{LEFT - 6}" y="{floor}" text-anchor="end">0</text><text x="{LEFT}" y="{HEIGHT - 8}">0</text>'
    )
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="cost against p99 TTFT"'
    return f'<svg {box}>{axes}<polyline points="{line}"/>{dots}{names}</svg>'


def _names(places: Sequence[_Place]) -> list[tuple[float, float, str]]:
    """Names of points, those of one place as one: below and to the right, where a falling curve leaves room."""
    found: list[tuple[float, float, str]] = []
    for place in places:
        for at, (x, y, name) in enumerate(found):
            if abs(place.x - x) < _NAME_WIDTH and abs(place.y - y) < _NAME_HEIGHT:
                found[at] = (min(x, place.x), max(y, place.y), f"{name}, {place.name}")
                break
        else:
            found.append((place.x, place.y, place.name))
    return found
