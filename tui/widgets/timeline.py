"""Time-lines: one column per second, the newest at the right."""

from __future__ import annotations

from collections.abc import Sequence

from ..glyphs import Glyphs


def timeline(values: Sequence[float | None], width: int, height: int, top: float, glyphs: Glyphs) -> list[str]:
    """`height` rows of `width` characters, the upper row first, that draw the newest `width` values from 0 to `top`.

    Nothing known is blank, zero is the lowest line, and what is more than zero always rises above it.
    """
    newest = [None] * (width - len(values)) + list(values[max(0, len(values) - width) :])
    steps = len(glyphs.levels)
    heights = [_height(value, top, steps * height) for value in newest]
    return ["".join(_cell(h, height - 1 - row, glyphs.levels) for h in heights) for row in range(height)]


def _height(value: float | None, top: float, most: int) -> int | None:
    """Levels filled by a value: 1 for zero, 2 … `most` above it."""
    if value is None:
        return None
    if value <= 0 or top <= 0:
        return 1
    return most if value >= top else max(2, round(value / top * most))


def _cell(height: int | None, row: int, levels: str) -> str:
    """The character of a column in `row` (0 is the lowest)."""
    filled = 0 if height is None else height - row * len(levels)
    return " " if filled <= 0 else levels[min(filled, len(levels)) - 1]
