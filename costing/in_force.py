"""What was in force when: effective-dated records matched to rows, by name and instant, in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .segments import Ints

NOTHING = -1
FOREVER = np.iinfo(np.int64).max


class Dated(NamedTuple):
    """A record's number, the name that it is for (a code) and when it holds: [from, to) in UTC ns, or open."""

    record: int
    name: int
    from_ns: int
    to_ns: int | None


def in_force(dated: Sequence[Dated], names: Ints, at_ns: Ints) -> Ints:
    """The record in force for each row (int64[rows]) by its name's code and instant; `NOTHING` where none is.

    Records of one name must not overlap; names of rows that no record has are welcome.
    """
    if not dated or not len(names):
        return np.full(len(names), NOTHING, np.int64)
    ordered = sorted(dated, key=lambda d: (d.name, d.from_ns))
    record = np.array([d.record for d in ordered], np.int64)
    name = np.array([d.name for d in ordered], np.int64)
    start = np.array([d.from_ns for d in ordered], np.int64)
    end = np.array([FOREVER if d.to_ns is None else d.to_ns for d in ordered], np.int64)
    borders = np.unique(start)
    scale = len(borders) + 1
    keys = name * scale + np.searchsorted(borders, start, "right")
    wanted = names * scale + np.searchsorted(borders, at_ns, "right")
    at = np.searchsorted(keys, wanted, "right") - 1
    fits = (at >= 0) & (name[at] == names) & (at_ns < end[at])
    return np.where(fits, record[at], NOTHING)
