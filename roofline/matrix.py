"""The weight matrices of a model, as one GPU of a replica multiplies with them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Matrix(NamedTuple):
    """`copies` equal matrices of `out` × `inner` numbers; in a mixture of experts each of them `experts` times.

    Every row goes through `chosen` of the experts.
    """

    out: int
    inner: int
    copies: int = 1
    experts: int = 1
    chosen: int = 1

    @property
    def params(self) -> int:
        """Numbers in all of them, every expert included."""
        return self.copies * self.out * self.inner * self.experts

    @property
    def active(self) -> int:
        """Numbers that one row is multiplied with."""
        return self.copies * self.out * self.inner * self.chosen

    def touched(self, rows: Any) -> Any:
        """Expected number of distinct experts that `rows` rows go through: E·(1 − (1 − k/E)^rows)."""
        return self.experts * (1 - (1 - self.chosen / self.experts) ** rows)
