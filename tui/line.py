"""A line of a frame: spans of text with a role each. Widgets paint the roles, plain text drops them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Literal

from rich.cells import cell_len, set_cell_size

Paint = Literal["", "label", "strong", "good", "warn", "bad", "prefill", "decode", "money", "brand", "faint"]
Place = Literal["here", "key", "cursor"]
Who = Literal["who0", "who1", "who2", "who3", "who4", "who5"]
"""Tells tenants apart."""
Role = Paint | Place | Who
Span = tuple[str, Role]
Line = list[Span]


def width_of(line: Iterable[Span]) -> int:
    """Terminal cells that a line takes."""
    return sum(cell_len(text) for text, _ in line)


def plain(line: Iterable[Span]) -> str:
    """The text of a line."""
    return "".join(text for text, _ in line)


def exactly(line: Line, width: int) -> Line:
    """A line cut or filled with spaces to `width` cells."""
    space = width - width_of(line)
    if space >= 0:
        return [*line, (" " * space, "")]
    kept: Line = []
    for text, role in line:
        size = cell_len(text)
        if size >= width:
            return [*kept, (set_cell_size(text, width), role)]
        kept.append((text, role))
        width -= size
    return kept


def spread(left: Line, right: Line, width: int) -> Line:
    """`left` and `right` at the two ends of a line, the left one cut before they would meet."""
    room = max(0, width - width_of(right))
    if right and width_of(left) > room:
        return [*exactly(left, max(0, room - 1)), (" " * min(1, room), ""), *right]
    return [*exactly(left, room), *right]


def beside(left: Sequence[Line], right: Sequence[Line], left_width: int) -> list[Line]:
    """Two blocks of lines, the right one starting at column `left_width`."""
    nothing: Line = []
    return [[*exactly(a, left_width), *b] for a, b in zip_longest(left, right, fillvalue=nothing)]


def flow(label: str, items: Sequence[Line], width: int, indent: int, gap: int = 2) -> list[Line]:
    """Items beside a label, as many on each line as fit into `width`; further lines are indented like the first."""
    lines: list[Line] = [[(f"{label:<{indent}}", "label")]]
    used = indent
    for item in items:
        size = width_of(item)
        if used > indent and used + gap + size > width:
            lines.append([(" " * indent, "")])
            used = indent
        if used > indent:
            lines[-1].append((" " * gap, ""))
            used += gap
        lines[-1] += item
        used += size
    return lines
