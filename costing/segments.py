"""Segments: the cells of each step inside one flat column, and exact integer arithmetic over them.

Shapes: columns are int64[rows], one value per cell; totals are int64[segments], one value per step that has cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
FEW_ROWS = 16
"""In segments of so few rows at most, comparing them in pairs takes less time than sorting."""


@dataclass(frozen=True, slots=True)
class Segments:
    """Consecutive rows that belong together. Every segment has at least one row."""

    starts: Ints
    """int64[segments]: the first row of each segment."""
    of: Ints
    """int64[rows]: the segment of each row."""

    @classmethod
    def from_labels(cls, labels: Ints) -> Segments:
        """Segments of equal neighbours in `labels` (int64[rows])."""
        first = np.ones(len(labels), np.bool_)
        first[1:] = labels[1:] != labels[:-1]
        return cls(np.flatnonzero(first), np.cumsum(first) - 1)

    @property
    def sizes(self) -> Ints:
        """Rows of each segment."""
        return np.diff(self.starts, append=len(self.of))

    def sum(self, column: Ints) -> Ints:
        """Total of each segment."""
        if len(self.starts) == len(self.of):
            return column
        return np.add.reduceat(column, self.starts) if len(self.starts) else column[:0]

    def any(self, column: Bools) -> Bools:
        """Whether any row of each segment is true."""
        return np.logical_or.reduceat(column, self.starts) if len(self.starts) else column[:0]

    def max(self, column: Ints) -> Ints:
        """Largest value of each segment."""
        return np.maximum.reduceat(column, self.starts) if len(self.starts) else column[:0]

    def end(self, segment: int) -> int:
        """The row after a segment's last."""
        return int(self.starts[segment + 1]) if segment + 1 < len(self.starts) else len(self.of)

    def cumulate(self, column: Ints) -> Ints:
        """Running total within each segment, the row itself included."""
        running = np.cumsum(column)
        before = running[self.starts] - column[self.starts]
        return running - before[self.of]

    def difference(self, column: Ints) -> Ints:
        """Each row minus the row before it in its segment; the inverse of `cumulate`."""
        previous = np.zeros_like(column)
        previous[1:] = column[:-1]
        previous[self.starts] = 0
        return column - previous

    def first(self) -> Ints:
        """1 on the first row of each segment, else 0."""
        column = np.zeros(len(self.of), np.int64)
        column[self.starts] = 1
        return column

    def top_up(self, floors: Ints, remainders: Ints, leftover: Ints) -> Ints:
        """Add 1 to each segment's `leftover` largest remainders, ties to the earlier row."""
        return floors + (self._ranks(remainders) < leftover[self.of])

    def _ranks(self, column: Ints) -> Ints:
        """Each row's place in its segment by falling value, ties to the earlier row."""
        if len(self.of) == 2 * len(self.starts) and (self.sizes == 2).all():
            second = (column[1::2] > column[::2]).astype(np.int64)
            return np.stack([second, 1 - second], axis=1).reshape(-1)
        most = int(self.sizes.max(initial=0))
        return self._ranks_by_pairs(column, most) if most <= FEW_ROWS else self._ranks_by_order(column)

    def _ranks_by_pairs(self, column: Ints, most: int) -> Ints:
        """Count for each row which others of its segment come before it, all rows at one distance at a time."""
        rank = np.zeros_like(column)
        for distance in range(1, most):
            together = self.of[distance:] == self.of[:-distance]
            later_first = column[distance:] > column[:-distance]
            rank[:-distance] += together & later_first
            rank[distance:] += together & ~later_first
        return rank

    def _ranks_by_order(self, column: Ints) -> Ints:
        order = np.lexsort((-column, self.of))
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order)) - self.starts[self.of]
        return rank


def multiply_divide(amount: Ints, part: Ints, whole: Ints) -> tuple[Ints, Ints]:
    """Quotient and remainder of amount · part / whole, exact although the product may need 128 bits.

    Long division over chunks of `amount`'s bits, as many at a time as `whole` leaves room for. All int64[rows], with
    amount ≥ 0 and 0 ≤ part ≤ whole, 1 ≤ whole < 2⁶¹; raises OverflowError above that.
    """
    if not len(amount):
        return amount, amount
    bits = 62 - int(whole.max()).bit_length()
    if bits < 1:
        raise OverflowError("a divisor of 2⁶¹ or more")
    passes = max(1, -(-int(amount.max()).bit_length() // bits))
    quotient, rest = np.zeros_like(amount), np.zeros_like(amount)
    for shift in range((passes - 1) * bits, -1, -bits):
        chunk = (amount >> shift) & ((1 << bits) - 1)
        rest = (rest << bits) + part * chunk
        digit = rest // whole
        rest -= digit * whole
        quotient = (quotient << bits) + digit
    return quotient, rest
