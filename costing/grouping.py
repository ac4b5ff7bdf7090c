"""Grouping: rows with equal keys found and summed in one sort, the groups in the order of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .segments import Ints, Segments

NARROW = 1 << 62


class Groups(NamedTuple):
    """Groups of rows, in the order of their keys."""

    order: Ints
    """int64[rows]: the rows, group by group."""
    segments: Segments
    """The groups within `order`."""
    keys: dict[str, Ints]
    """int64[groups]: each group's code in every key."""

    @property
    def first(self) -> Ints:
        """int64[groups]: a row of each group, the first."""
        return self.order[self.segments.starts]

    def sum(self, column: Ints) -> Ints:
        """Total of each group (int64[groups])."""
        return self.segments.sum(column[self.order])

    def of_equal(self, names: Sequence[str]) -> Segments:
        """Segments of neighbouring groups that agree in the keys `names`."""
        changes = np.ones(len(self.segments.starts), np.bool_)
        changes[1:] = False
        for name in names:
            codes = self.keys[name]
            changes[1:] |= codes[1:] != codes[:-1]
        return Segments.from_labels(np.cumsum(changes, dtype=np.int64))


def group(keys: dict[str, Ints]) -> Groups:
    """Group rows by keys: int64[rows] codes of at least −1, the first key the most significant."""
    combined = np.zeros(len(next(iter(keys.values()))), np.int64)
    room = 1
    for codes in keys.values():
        width = int(codes.max()) + 2 if len(codes) else 1
        if room * width >= NARROW:
            distinct, combined = np.unique(combined, return_inverse=True)
            room = len(distinct)
        combined = combined * width + codes + 1
        room *= width
    order = np.argsort(combined, kind="stable")
    segments = Segments.from_labels(combined[order])
    first = order[segments.starts]
    return Groups(order, segments, {name: codes[first] for name, codes in keys.items()})
