"""Sums of clock units: exact, although many hours of them do not fit 64 bits."""

from __future__ import annotations

import numpy as np

from ...roofline.step_model import UNIT_BITS
from .decode_rows import Ints

_MASK = (1 << UNIT_BITS) - 1


def running(units: Ints) -> tuple[Ints, Ints]:
    """Running totals of clock units (int64[n] to int64[n + 1], from 0), as nanoseconds and units on top of those."""
    if len(units) * int(units.max(initial=0)) < 1 << 62:
        total = _running(units)
        return total >> UNIT_BITS, total & _MASK
    return _running(units >> UNIT_BITS), _running(units & _MASK)


def _running(column: Ints) -> Ints:
    total = np.zeros(len(column) + 1, np.int64)
    np.cumsum(column, out=total[1:])
    return total
