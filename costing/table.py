"""The report as a table in a terminal, for people who pay the bill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction

from rich.console import Console
from rich.text import Text

from .apportion import round_together
from .formats import NO_PRICE, NO_RATE
from .grid import Column, Grid
from .idle import IDLE_WORDS
from .line import By
from .marginal_view import WORDS as MARGINAL_WORDS
from .notes import clock
from .rating import MICRO, money_text
from .report import Line, Report

UNKNOWN = "–"
FREE = "free"
ROOM = 1000
"""Columns of the imaginary paper on which a table has its natural width."""


def render(report: Report, console: Console) -> None:
    """Print a report. Printed amounts are rounded so that they still add up to the printed total.

    A narrow terminal shows fewer columns; a pipe gets the whole table in its natural width and no escapes.
    """
    if console.is_terminal:
        for text in page(report, console.width):
            console.print(text, soft_wrap=True)
    else:
        console.file.writelines(f"{text.plain.rstrip()}\n" for text in page(report, ROOM))


def page(report: Report, room: int) -> Iterator[Text]:
    """The printed lines of a report, the table in at most `room` columns; notes may be longer."""
    period = f"{clock(report.from_ns, report)} to {clock(report.to_ns, report)} {report.period.tz}"
    title = "GPU cost" if report.is_priced else "GPU use"
    yield Text.assemble((title, "bold"), "  ", period)
    yield Text(IDLE_WORDS[report.idle_policy], style="dim")
    if report.marginal is not None:
        yield Text(MARGINAL_WORDS, style="dim")
    lines = _in_print_order(report)
    yield from _grid(report, lines).lines(room)
    for note in report.notes():
        yield Text(note, style="dim")
    for problem in report.check():
        yield Text(f"Does not add up: {problem}", style="bold red")


def _in_print_order(report: Report) -> list[Line]:
    """Tenants by what they used, unless days or hours tell a story; then everything else, and the total."""
    tenants = [line for line in report.lines if line.account == "tenant"]
    if not {"day", "hour"} & set(report.by):
        tenants.sort(key=lambda line: -line.gpu_ns)
    others = [line for line in report.lines if line.account != "tenant"]
    return [*tenants, *others, report.total]


def _columns(report: Report, lines: Sequence[Line]) -> list[Column]:
    unit, places = (report.unit, 6 if report.is_priced else 3)
    return [
        Column("requests", [_count(line, line.requests) for line in lines], 5),
        Column("prompt", [_count(line, line.prompt_tokens) for line in lines], 2),
        Column("cached", [_count(line, line.cached_tokens) for line in lines], 4),
        Column("output", [_count(line, line.output_tokens) for line in lines], 2),
        _gpu_time(lines),
        Column("share", _percent(lines), 3),
        *_money_columns(report, lines),
        *_marginal_columns(report, lines),
        Column(f"{unit}/1k", [_price(line, line.per_1k, places) for line in lines]),
        Column(f"{unit}/1k\nwith idle", [_price(line, line.per_1k_loaded, places) for line in lines], 1),
        Column(f"{unit}/1k\nout", [_price(line, line.per_1k_out, places) for line in lines], 6),
    ]


def _count(line: Line, value: int) -> str:
    return f"{value:,}" if line.rides else ""


def _price(line: Line, value: Decimal | None, places: int) -> str:
    if line.account != "tenant":
        return ""
    return UNKNOWN if value is None else f"{value:,.{places}f}"


def _percent(lines: Sequence[Line]) -> list[str]:
    """Parts of the period's own GPU time, of which corrections have none."""
    shares = [Fraction(line.share * 1000) for line in lines[:-1] if line.share is not None]
    texts = [f"{text} %" for text in _rounded(shares, 1)] if shares else [UNKNOWN] * len(lines)
    return ["" if line.is_correction else text for line, text in zip(lines, texts, strict=True)]


def _gpu_time(lines: Sequence[Line]) -> Column:
    """GPU time in seconds, or in hours when there are many."""
    unit, name = _gpu_unit(lines)
    return Column(name, _rounded([Fraction(line.gpu_ns * 1000, unit) for line in lines[:-1]], 3))


def _gpu_unit(lines: Sequence[Line]) -> tuple[int, str]:
    return (3_600_000_000_000, "GPU·h") if lines[-1].gpu_ns >= 36_000_000_000_000 else (1_000_000_000, "GPU·s")


def _marginal_columns(report: Report, lines: Sequence[Line]) -> list[Column]:
    """What would go away without each tenant, rounded on its own, since it adds up to nothing; no total."""
    if report.marginal is None:
        return []
    unit, name = _gpu_unit(lines)
    told = [report.marginal.of(line) for line in lines]
    times = [None if each is None else _alone(each.gpu_ns, unit // 1000, 3) for each in told]
    columns = [Column(f"marginal\n{name}", [text or "" for text in times])]
    if report.is_priced:
        places = _places(lines[-1].amount_micro or 0)
        amounts = [None if each is None else _alone(each.amount_micro, 10 ** (6 - places), places) for each in told]
        columns.append(Column(f"marginal\n{report.currency}", [text or "" for text in amounts]))
    return columns


def _alone(value: int | None, unit: int, places: int) -> str:
    return UNKNOWN if value is None else _small(value, round(Fraction(value, unit)), places)


def _money_columns(report: Report, lines: Sequence[Line]) -> list[Column]:
    """Amounts alone and with the idle part, and what the tokens would cost by the token."""
    if not report.is_priced:
        columns = [Column("cost", [NO_RATE] * len(lines))]
    else:
        columns = [
            Column(report.currency, _amounts([line.amount_micro for line in lines], _unrated(lines), NO_RATE)),
            Column(
                f"{report.currency}\nwith idle",
                _amounts([line.loaded_micro for line in lines], _unrated(lines), NO_RATE),
                0 if report.idle_policy != "separate" else 7,
            ),
        ]
    if report.api_currency or report.unpriced:
        heading = f"{report.api_currency or 'cost'}\nby token"
        unpriced = [line.unpriced_tokens > 0 for line in lines]
        texts = _amounts([line.api_micro for line in lines], unpriced, NO_PRICE)
        columns.append(Column(heading, [_by_token(line, text) for line, text in zip(lines, texts, strict=True)], 8))
    return columns


def _by_token(line: Line, text: str) -> str:
    """What a line's tokens would cost: priced, free, or no price; nothing for lines without riders."""
    if not line.rides or (line.account == "tenant" and not line.tokens):
        return ""
    return FREE if line.free_tokens and line.free_tokens == line.tokens else text


def _unrated(lines: Sequence[Line]) -> list[bool]:
    return [line.unrated_gpu_ns > 0 for line in lines]


def _amounts(values: Sequence[int | None], is_bound: Sequence[bool], unknown: str) -> list[str]:
    """Amounts, the last one their sum, in as many places as the sum needs to be worth reading.

    They are rounded together; a lower bound says so, and what rounds to nothing is no 0.
    """
    known = [value for value in values[:-1] if value is not None]
    places = _places(sum(known))
    printed = iter([*round_together([Fraction(value, 10 ** (6 - places)) for value in known])])
    texts: list[str] = []
    whole = 0
    for value, bound in zip(values[:-1], is_bound, strict=False):
        if value is None:
            texts.append(unknown)
            continue
        rounded = next(printed)
        whole += rounded
        texts.append(_bounded(_small(value, rounded, places), bound=bound))
    total = unknown if values[-1] is None else _bounded(_grouped(money_text(whole, places)), bound=is_bound[-1])
    return [*texts, total]


def _places(total: int) -> int:
    return 2 if abs(total) >= 100 * MICRO else 4 if abs(total) >= MICRO else 6


def _small(value: int, rounded: int, places: int) -> str:
    """A rounded amount; what is above nothing and rounds to it is less than the smallest one printed."""
    return f"<{money_text(1, places)}" if value > 0 and not rounded else _grouped(money_text(rounded, places))


def _bounded(text: str, *, bound: bool) -> str:
    return f"≥ {text}" if bound else text


def _rounded(quotas: Sequence[Fraction], places: int) -> list[str]:
    """Texts of values in 10⁻ᵖˡᵃᶜᵉˢ, rounded together, with their sum at the end."""
    values = round_together(quotas)
    return [_grouped(money_text(value, places)) for value in [*values, sum(values)]]


def _grouped(text: str) -> str:
    """Decimal text with commas between thousands."""
    whole, _, places = text.removeprefix("-").partition(".")
    return f"{'-' if text.startswith('-') else ''}{int(whole):,}.{places}"


def _grid(report: Report, lines: Sequence[Line]) -> Grid:
    names = list(zip(*(_names(report, line) for line in lines), strict=True))
    own = [Column(heading, texts) for heading, texts in zip(report.by, names, strict=True)]
    tenants = sum(line.account == "tenant" for line in lines)
    styles = ["" if line.account == "tenant" else "italic" for line in lines[:-1]]
    return Grid(own, _columns(report, lines), [*styles, "bold"], frozenset({tenants - 1, len(lines) - 2}))


def _names(report: Report, line: Line) -> Sequence[str]:
    """A line's keys; on a line that is no tenant's, its account in the first free place, or before the first key."""
    keys = [_named(report, by, key) for by, key in zip(report.by, line.keys, strict=True)]
    if line.account == "tenant":
        return [key or "(none)" for key in keys]
    if "" in keys:
        keys[keys.index("")] = line.account
    else:
        keys[0] = f"{line.account} · {keys[0]}"
    return keys


def _named(report: Report, by: By, key: str) -> str:
    """A key, after which a tenant's own name follows."""
    label = _printable(report.label(by, key))
    return f"{_printable(key)} · {label}" if by == "tenant" and label != _printable(key) else label


def _printable(text: str) -> str:
    """Text without characters that could move the cursor or hide."""
    return "".join(char if char.isprintable() else "�" for char in text)
