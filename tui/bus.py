"""The bus, drawn: one seat per sequence, a letter and colour per tenant, filled by how long it has been ridden."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, NamedTuple

from .glyphs import Glyphs
from .line import Line, Role, Span, Who

if TYPE_CHECKING:
    from .boarding import Kind, Ride

WHO: tuple[Who, ...] = ("who0", "who1", "who2", "who3", "who4", "who5")
LETTERS = ascii_uppercase + ascii_lowercase
FAST = "»"
NEW = "+"
FRAME = 2
"""Columns of the bus's sides."""


class Mark(NamedTuple):
    """How one tenant's seats are told from others: a letter, because not every terminal has colours."""

    letter: str
    role: Who


class Rider(NamedTuple):
    """One taken seat, as it is to be drawn."""

    mark: Mark
    part: float
    """How full it is drawn, 0…1."""
    is_fast: bool
    is_new: bool


class Style(NamedTuple):
    """How big a seat is drawn: its columns, its lines, and the empty lines after each row of seats."""

    width: int
    height: int
    gap: int = 0


STYLES = (Style(7, 2, 1), Style(5, 2, 1), Style(4, 2), Style(4, 1), Style(3, 1), Style(2, 1), Style(1, 1))
"""From the roomiest to the smallest."""


class Plan(NamedTuple):
    """A style, and in how many rows all seats fit with it."""

    style: Style
    rows: int


def marks_of(kinds: Iterable[Kind]) -> dict[Kind, Mark]:
    """A letter and a colour for each tenant and tier, by name."""
    return {
        kind: Mark(LETTERS[number % len(LETTERS)], WHO[number % len(WHO)]) for number, kind in enumerate(sorted(kinds))
    }


def parts_by_age(ride: Ride) -> dict[Kind, list[float]]:
    """How full each seat is: its age against that of the longest rider in the step."""
    end = ride.step.ended_ns
    oldest = max((end - seat.since_ns for seats in ride.seats.values() for seat in seats), default=0)
    return {
        kind: [(end - seat.since_ns) / oldest if oldest else 0.0 for seat in seats]
        for kind, seats in ride.seats.items()
    }


def parts_by_context(ride: Ride) -> dict[Kind, list[float]]:
    """How full each seat is: the mean KV blocks of its kind against those of the kind that holds the most."""
    mean = {kind: blocks_each(ride, kind) for kind in ride.seats}
    most = max(mean.values(), default=0.0)
    return {kind: [mean[kind] / most if most else 0.0] * len(seats) for kind, seats in ride.seats.items()}


def blocks_each(ride: Ride, kind: Kind) -> float:
    """KV blocks that a rider of a kind holds in a step, on average."""
    cells = [cell for cell in ride.cells if (cell.tenant_id, cell.tier) == kind]
    seqs = sum(cell.seqs for cell in cells)
    held = sum(cell.kv_block_ns for cell in cells)
    return held / (ride.step.duration_ns * seqs) if seqs and ride.step.duration_ns else 0.0


def bus(
    ride: Ride,
    seats: int,
    marks: Mapping[Kind, Mark],
    parts: Mapping[Kind, Sequence[float]],
    width: int,
    height: int,
    glyphs: Glyphs,
) -> list[Line]:
    """The seats on both sides of an aisle, as big as `width` and `height` allow; in at most `height` lines.

    Riders sit from the front, kind by kind; behind them stand those on board that no cell tells of, then empty seats.
    """
    style, rows = plan(seats, width - 2 * FRAME, height - 3)
    riders = list(_riders(ride, marks, parts))
    nameless = min(max(0, ride.step.running - len(riders)), max(0, seats - len(riders)))
    drawn = [_seat(rider, style, glyphs) for rider in riders[:seats]]
    drawn += [_blank("?", style, glyphs, "label")] * nameless
    drawn += [_blank(glyphs.signs["none"], style, glyphs, "faint")] * (seats - len(drawn))
    inner = -(-seats // rows) * style.width
    blocks = [_row(drawn[row::rows], inner, style) for row in range(rows)]
    edge: Line = [(" " + glyphs.rule * (inner + FRAME), "faint")]
    left, right = ([line for block in part for line in block] for part in (blocks[: rows // 2], blocks[rows // 2 :]))
    return [edge, *left, [], *right, edge]


def plan(seats: int, width: int, height: int) -> Plan:
    """The roomiest style in which `seats` fit: an even number of rows, four of them or more where that fits too."""
    for style in STYLES:
        most = height // (style.height + style.gap) // 2 * 2
        needed = max(2, -(-seats // max(1, width // style.width)))
        needed += needed % 2
        if needed <= most:
            return Plan(style, max(needed, min(4, most)))
    return Plan(STYLES[-1], max(2, height // 2 * 2))


def _riders(ride: Ride, marks: Mapping[Kind, Mark], parts: Mapping[Kind, Sequence[float]]) -> Iterator[Rider]:
    for kind in sorted(ride.seats):
        count, new = len(ride.seats[kind]), ride.on.get(kind, 0)
        for number, part in enumerate(parts[kind]):
            yield Rider(marks[kind], part, kind[1] == "fast", number >= count - new)


def _seat(rider: Rider, style: Style, glyphs: Glyphs) -> list[Span]:
    """Letter, fill, and a sign for who just got on or rides fast; small seats leave out the last ones."""
    level = glyphs.levels[min(len(glyphs.levels) - 1, int(rider.part * len(glyphs.levels)))]
    sign = NEW if rider.is_new else glyphs.text(FAST)[:1] if rider.is_fast else " "
    letter, paint = rider.mark
    if style.height > 1:
        return [(_cell(letter + sign, style), paint), (_cell(level * (style.width - 2), style), paint)]
    text = {1: letter, 2: letter + level}.get(style.width, letter + level + sign)
    return [(_cell(text, style), paint)]


def _blank(sign: str, style: Style, glyphs: Glyphs, role: Role) -> list[Span]:
    """A seat without a known rider."""
    if style.height > 1:
        return [(_cell(sign, style), role), (_cell(glyphs.levels[0] * (style.width - 2), style), role)]
    return [(_cell(sign, style), role)]


def _cell(text: str, style: Style) -> str:
    return f"{text:<{style.width}}"[: style.width]


def _row(seats: Sequence[Sequence[Span]], inner: int, style: Style) -> list[Line]:
    """One row of seats between the sides of the bus."""
    space = inner - len(seats) * style.width
    lines: list[Line] = []
    for number in range(style.height + style.gap):
        gap: Span = (" " * style.width, "")
        spans = [seat[number] if number < style.height else gap for seat in seats]
        lines.append([(" │ ", "faint"), *spans, (" " * space + "│", "faint")])
    return lines
