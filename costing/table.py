"""The report as a table in a terminal, for people who pay the bill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from io import StringIO

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from .apportion import round_together
from .formats import instant
from .rating import MICRO, money_text
from .report import NO_RATE, Line, Report

UNKNOWN = "–"
RULES = Box("\n".join(["    ", "    ", " ── ", "    ", " ── ", " ── ", "    ", "    "]) + "\n")
"""No frame: thin rules under the headings and between blocks."""
ROOM = 1000
"""Columns of the imaginary paper on which a table's natural width is measured."""
NAME_ROOM = 14
"""A name keeps at least so many columns; longer ones are cut where room is short."""


@dataclass(frozen=True, slots=True)
class Column:
    """One number column: its heading, the text for each printed line, and how early it goes when room is short."""

    heading: str
    texts: Sequence[str]
    drop: int = 0
    """0: stays; otherwise the highest goes first."""


def render(report: Report, console: Console) -> None:
    """Print a report. Printed amounts are rounded so that they still add up to the printed total.

    A narrow terminal shows fewer columns; a pipe gets the whole table in its natural width and no escapes.
    """
    if console.is_terminal:
        _print(report, console)
        return
    page = StringIO()
    _print(report, Console(file=page, width=ROOM, color_system=None, highlight=False))
    console.file.writelines(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())


def _print(report: Report, console: Console) -> None:
    period = f"{_clock(report.from_ns)} to {_clock(report.to_ns)} UTC"
    title = "GPU use" if report.rate is None else "GPU cost"
    console.print(Text.assemble((title, "bold"), "  ", period), soft_wrap=True)
    lines = _in_print_order(report)
    console.print(_fit(report, lines, _columns(report, lines), console))
    for note in report.notes():
        console.print(Text(note, style="dim"), soft_wrap=True)
    for problem in report.check():
        console.print(Text(f"Does not add up: {problem}", style="bold red"), soft_wrap=True)


def _clock(at_ns: int) -> str:
    return instant(at_ns).replace("T", " ").removesuffix("Z")


def _in_print_order(report: Report) -> list[Line]:
    """Tenants by what they used, unless days tell a story; then everything else, and the total."""
    tenants = [line for line in report.lines if line.account == "tenant"]
    if "day" not in report.by:
        tenants.sort(key=lambda line: -line.gpu_ns)
    others = [line for line in report.lines if line.account != "tenant"]
    return [*tenants, *others, report.total]


def _columns(report: Report, lines: Sequence[Line]) -> list[Column]:
    unit, places = (report.unit, 3) if report.rate is None else (report.currency, 6)
    return [
        Column("requests", [_count(line, line.requests) for line in lines], 5),
        Column("prompt", [_count(line, line.prompt_tokens) for line in lines], 2),
        Column("cached", [_count(line, line.cached_tokens) for line in lines], 4),
        Column("output", [_count(line, line.output_tokens) for line in lines], 2),
        _gpu_time(lines),
        Column("share", _percent(lines), 3),
        *_money_columns(report, lines),
        Column(f"{unit}/1k", [_price(line, line.per_1k, places) for line in lines]),
        Column(f"{unit}/1k\nwith idle", [_price(line, line.per_1k_loaded, places) for line in lines], 1),
        Column(f"{unit}/1k\nout", [_price(line, line.per_1k_out, places) for line in lines], 6),
    ]


def _count(line: Line, value: int) -> str:
    return f"{value:,}" if line.account in ("tenant", "total") else ""


def _price(line: Line, value: Decimal | None, places: int) -> str:
    if line.account != "tenant":
        return ""
    return UNKNOWN if value is None else f"{value:,.{places}f}"


def _percent(lines: Sequence[Line]) -> list[str]:
    shares = [Fraction(line.share * 1000) for line in lines[:-1] if line.share is not None]
    return [f"{text} %" for text in _rounded(shares, 1)] if shares else [UNKNOWN] * len(lines)


def _gpu_time(lines: Sequence[Line]) -> Column:
    """GPU time in seconds, or in hours when there are many."""
    total = lines[-1].gpu_ns
    unit, name = (3_600_000_000_000, "GPU·h") if total >= 36_000_000_000_000 else (1_000_000_000, "GPU·s")
    return Column(name, _rounded([Fraction(line.gpu_ns * 1000, unit) for line in lines[:-1]], 3))


def _money_columns(report: Report, lines: Sequence[Line]) -> list[Column]:
    """Amounts alone and with the idle part, in as many places as the total needs to be worth reading."""
    total = report.total.amount_micro
    if total is None:
        return [Column("cost", [NO_RATE] * len(lines))]
    places = 2 if total >= 100 * MICRO else 4 if total >= MICRO else 6
    unit = 10 ** (6 - places)
    alone, loaded = (
        _rounded([Fraction(value, unit) for value in values if value is not None], places)
        for values in ([x.amount_micro for x in lines[:-1]], [x.loaded_micro for x in lines[:-1]])
    )
    return [Column(report.currency, alone), Column(f"{report.currency}\nwith idle", loaded, 7)]


def _rounded(quotas: Sequence[Fraction], places: int) -> list[str]:
    """Texts of values in 10⁻ᵖˡᵃᶜᵉˢ, rounded together, with their sum at the end."""
    values = round_together(quotas)
    return [_grouped(money_text(value, places)) for value in [*values, sum(values)]]


def _grouped(text: str) -> str:
    whole, _, places = text.partition(".")
    return f"{int(whole):,}.{places}"


def _fit(report: Report, lines: Sequence[Line], columns: list[Column], console: Console) -> Table:
    """The table with as many columns as the console has room for."""
    while True:
        table = _table(report, lines, columns)
        droppable = [column for column in columns if column.drop]
        needs = Measurement.get(console, console.options.update(max_width=ROOM), table).minimum
        if not droppable or needs <= console.width:
            return table
        columns = [column for column in columns if column is not max(droppable, key=lambda column: column.drop)]


def _table(report: Report, lines: Sequence[Line], columns: Sequence[Column]) -> Table:
    table = Table(box=RULES, show_edge=False, pad_edge=False, header_style="bold", show_lines=False)
    for number, heading in enumerate(report.by):
        room = min(NAME_ROOM, max(cell_len(_names(line)[number]) for line in lines))
        table.add_column(Text(heading), no_wrap=True, min_width=room, vertical="bottom")
    for column in columns:
        room = max(cell_len(text) for text in [*column.heading.split("\n"), *column.texts])
        table.add_column(Text(column.heading), justify="right", no_wrap=True, min_width=room, vertical="bottom")
    for number, line in enumerate(lines):
        ends_block = number + 2 == len(lines) or (line.account == "tenant" and lines[number + 1].account != "tenant")
        cells = (Text(column.texts[number]) for column in columns)
        style = "bold" if line is report.total else "" if line.account == "tenant" else "italic"
        table.add_row(*(Text(name) for name in _names(line)), *cells, style=style, end_section=ends_block)
    return table


def _names(line: Line) -> Sequence[str]:
    """A line's keys; on a line that is no tenant's, its account in the first free place, or before the first key."""
    keys = [_printable(key) for key in line.keys]
    if line.account == "tenant":
        return [key or "(none)" for key in keys]
    if "" in keys:
        keys[keys.index("")] = line.account
    else:
        keys[0] = f"{line.account} · {keys[0]}"
    return keys


def _printable(text: str) -> str:
    """Text without characters that could move the cursor or hide."""
    return "".join(char if char.isprintable() else "�" for char in text)
