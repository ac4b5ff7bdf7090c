"""Open time: where the corrections of a closed period belong.

A closed bill stays as it is, so what arrives late goes to the bill that follows it: the one that holds the first open
instant after it. Where the period after it is closed too, that is the one after that, and so on; a period that is
closed far ahead keeps nothing for itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..events import Closing
from .periods import Period


def open_after(closings: Sequence[Closing], closing: Closing) -> int:
    """The first instant after a closing that no standing closing holds (UTC ns)."""
    at_ns = closing.to_ns
    for later in sorted(closings, key=lambda each: each.from_ns):
        if later.from_ns <= at_ns < later.to_ns:
            at_ns = later.to_ns
    return at_ns


def due_in(closings: Sequence[Closing], period: Period) -> list[Closing]:
    """The closings before a period whose corrections belong to its bill."""
    before = [closing for closing in closings if closing.to_ns <= period.from_ns]
    return [closing for closing in before if period.from_ns <= open_after(closings, closing) < period.to_ns]


def within(closings: Sequence[Closing], period: Period) -> list[Closing]:
    """The closings that lie wholly within a period."""
    return [each for each in closings if period.from_ns <= each.from_ns and each.to_ns <= period.to_ns]
