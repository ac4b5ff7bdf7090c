"""Whole columns shared out exactly: the largest-remainder rule for many lines at once."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np

from .segments import Ints, Segments, multiply_divide

NARROW = 1 << 62
"""Products below it are computed in 64 bits, others in Python's integers."""


def share_out(amounts: Ints, weights: Ints, segments: Segments) -> Ints:
    """Split each segment's amount (int64[segments], ≥ 0) by its rows' weights (int64[rows], ≥ 0) into whole parts.

    The first row takes it where all weights are zero; ties go to the earlier row.
    """
    if not len(weights):
        return weights
    nothing = segments.sum(weights) == 0
    weights = np.where(nothing[segments.of], segments.first(), weights)
    floors, rests = multiply_divide(amounts[segments.of], weights, segments.sum(weights)[segments.of])
    return segments.top_up(floors, rests, amounts - segments.sum(floors))


def multiply_rounded(quantities: Ints, prices: Sequence[Fraction], which: Ints) -> Ints:
    """Quantities (int64[rows], ≥ 0) × `prices[which]` in integers that sum to the rounded sum (half to even).

    Largest remainder, ties to the earlier row. Raises OverflowError where an amount does not fit 64 bits.
    """
    if not len(quantities):
        return quantities
    whole = lcm(*(price.denominator for price in prices))
    factors: Any = np.array([int(price * whole) for price in prices], dtype=object)[which]
    wide = max(int(quantities.max()) * int(factors.max()), whole * len(quantities)) >= NARROW
    products: Any = quantities.astype(object) * factors if wide else quantities * factors.astype(np.int64)
    floors, rests = products // whole, products % whole
    total = Fraction(int(floors.sum()) * whole + int(rests.sum()), whole)
    floors[np.argsort(-rests, kind="stable")[: round(total) - int(floors.sum())]] += 1
    return floors.astype(np.int64)
