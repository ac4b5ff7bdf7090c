"""Bars that fill from the left, in the finest steps that the glyphs have."""

from __future__ import annotations

from ..glyphs import Glyphs


def bar(part: float, width: int, glyphs: Glyphs) -> tuple[str, str]:
    """The filled and the empty piece of a bar of `width` cells. More than nothing is visible, more than all is full."""
    if width <= 0:
        return "", ""
    fine = len(glyphs.partial) + 1
    units = min(width * fine, max(round(part * width * fine), 1 if part > 0 else 0))
    whole, rest = divmod(units, fine)
    if not glyphs.partial and part > 0:
        whole = max(1, whole)
    filled = glyphs.full * whole + (glyphs.partial[rest - 1] if rest else "")
    return filled, glyphs.track * (width - len(filled))
