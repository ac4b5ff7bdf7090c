"""The batch-size distribution: on one line, or one bar per line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..glyphs import Glyphs
from ..line import Line, width_of
from ..lines import INDENT
from ..numbers import percent, share
from .bar import bar

if TYPE_CHECKING:
    from ..snapshot import Bin, Snapshot


def one_line(snapshot: Snapshot, width: int, glyphs: Glyphs) -> Line:
    """Every bin with one sign for its size against the biggest; with short labels where long ones do not fit."""
    most = max((b.busy_ns for b in snapshot.bins), default=0)
    for label in (_long, _short):
        line: Line = [(f"{'batch':<{INDENT}}", "label")]
        for found in snapshot.bins:
            line.append((glyphs.text(label(found)), "label"))
            line.append((f" {_level(found.busy_ns, most, glyphs)}  ", "decode"))
        if width_of(line) <= width + 2:
            break
    return line


def bars(snapshot: Snapshot, width: int, glyphs: Glyphs) -> list[Line]:
    """One bar per bin under a title, and each bin's part of the busy time."""
    most = max((b.busy_ns for b in snapshot.bins), default=0)
    lines: list[Line] = [[(f"{'batch':<{INDENT}}", "label"), ("share of busy time by riders", "faint")]]
    for found in snapshot.bins:
        filled, empty = bar(found.busy_ns / most if most else 0, width - INDENT - 7, glyphs)
        told = percent(share(found.busy_ns, snapshot.busy_ns))
        lines.append(
            [
                (f"{glyphs.text(found.label):>{INDENT - 1}} ", "label"),
                (filled, "decode"),
                (empty, "faint"),
                (f" {told:>6}", "strong" if found.busy_ns else "faint"),
            ]
        )
    return lines


def _level(busy_ns: int, most: int, glyphs: Glyphs) -> str:
    if busy_ns <= 0:
        return glyphs.signs["none"]
    return glyphs.levels[max(1, round(busy_ns / most * len(glyphs.levels)) - 1)]


def _long(found: Bin) -> str:
    return found.label


def _short(found: Bin) -> str:
    return f"≤{found.high}"
