"""The costs panel of the Live page: batch sizes, idle, the price of this hour, and what batching saves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import lines
from .glyphs import Glyphs
from .line import Line, beside
from .widgets.histogram import bars, one_line

if TYPE_CHECKING:
    from .snapshot import Snapshot

BESIDE = 105
ROOMY = 8


def costs(snapshot: Snapshot, width: int, height: int, glyphs: Glyphs) -> Sequence[Line]:
    """Between two rules where there is room; of little room idle gets the first lines."""
    if height < len(_blocks(snapshot, width, glyphs)) + 1:
        return _blocks(snapshot, width, glyphs)[1 : height + 1]
    rule: Line = [(glyphs.rule * width, "faint")]
    room = height - 2
    if width >= BESIDE and room >= ROOMY:
        left = max(38, width * 34 // 100)
        told = _airy(snapshot, width - left, glyphs)
        shown = beside(bars(snapshot, left - 2, glyphs)[:room], told[:room], left)
    else:
        shown = _blocks(snapshot, width, glyphs)[:room]
    return [rule, *shown, *([] for _ in range(room - len(shown))), rule]


def _blocks(snapshot: Snapshot, width: int, glyphs: Glyphs) -> list[Line]:
    return [one_line(snapshot, width, glyphs), *_airy(snapshot, width, glyphs, gap=0)]


def _airy(snapshot: Snapshot, width: int, glyphs: Glyphs, gap: int = 1) -> list[Line]:
    between: list[Line] = [[] for _ in range(gap)]
    told = [
        *lines.idle(snapshot, width),
        *between,
        *lines.cost(snapshot, width, glyphs),
        *between,
        *lines.saving(snapshot, width),
    ]
    return [[(glyphs.text(text), role) for text, role in line] for line in told]
