"""A grid: names on the left, numbers on the right, thin rules between blocks; as fast for 10 000 rows as for ten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

from rich.cells import cell_len, set_cell_size
from rich.text import Text

GAP = "   "
NAME_ROOM = 14
"""A name keeps at least so many columns; longer ones are cut where room is short."""


@dataclass(frozen=True)
class Column:
    """One column of texts, a line of the heading per line of the table's head."""

    heading: str
    texts: Sequence[str]
    drop: int = 0
    """Where room is short the highest goes first; 0 stays."""

    @cached_property
    def width(self) -> int:
        """Cells that the widest text needs."""
        return max(map(cell_len, [*self.heading.split("\n"), *self.texts]))


@dataclass(frozen=True, slots=True)
class Grid:
    """Columns of equal length; `styles` has one style for each row, `ends` the rows after which a rule is drawn."""

    names: Sequence[Column]
    numbers: Sequence[Column]
    styles: Sequence[str]
    ends: frozenset[int]

    def lines(self, room: int) -> Iterator[Text]:
        """The printed lines, at most `room` cells wide where dropping columns and cutting names can make them so."""
        numbers = self._fitting(room)
        widths = self._name_widths(room - sum(column.width + len(GAP) for column in numbers))
        columns = [*self.names, *numbers]
        sizes = [*widths, *(column.width for column in numbers)]
        rule = Text("─" * (sum(sizes) + len(GAP) * (len(sizes) - 1)))
        headings = zip_longest(*(reversed(column.heading.split("\n")) for column in columns), fillvalue="")
        for cells in reversed(list(headings)):
            yield Text(self._row(cells, sizes), style="bold")
        yield rule
        for number, style in enumerate(self.styles):
            yield Text(self._row([column.texts[number] for column in columns], sizes), style=style)
            if number in self.ends:
                yield rule

    def _row(self, cells: Sequence[str], sizes: Sequence[int]) -> str:
        names = len(self.names)
        left = [_fit(text, size) for text, size in zip(cells[:names], sizes, strict=False)]
        right = [" " * (size - cell_len(text)) + text for text, size in zip(cells[names:], sizes[names:], strict=True)]
        return GAP.join([*left, *right])

    def _fitting(self, room: int) -> list[Column]:
        numbers = list(self.numbers)
        needed = sum(min(NAME_ROOM, column.width) for column in self.names) + len(GAP) * (len(self.names) - 1)
        while sum(column.width + len(GAP) for column in numbers) + needed > room:
            last = max(numbers, key=lambda column: column.drop, default=None)
            if last is None or not last.drop:
                break
            numbers.remove(last)
        return numbers

    def _name_widths(self, room: int) -> list[int]:
        """Widths of the names: their own, or less from the widest down to `NAME_ROOM`."""
        widths = [column.width for column in self.names]
        while sum(widths) + len(GAP) * (len(widths) - 1) > room and max(widths) > NAME_ROOM:
            widths[widths.index(max(widths))] -= 1
        return widths


def _fit(text: str, size: int) -> str:
    return set_cell_size(text, size) if cell_len(text) <= size else f"{set_cell_size(text, size - 1)}…"
