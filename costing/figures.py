"""Figures: amounts as people read them, rounded so that they still add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from .apportion import round_together
from .rating import HOUR_NS, MICRO, money_text
from .report import Report


@dataclass(frozen=True, slots=True)
class Figures:
    """How amounts are written: money in `places`, or GPU-hours where there is no rate."""

    currency: str | None
    places: int

    @classmethod
    def of(cls, report: Report) -> Figures:
        """The figures of a report's total."""
        return cls.for_total(report.currency if report.is_priced else None, report.total.amount_micro or 0)

    @classmethod
    def for_total(cls, currency: str | None, total_micro: int) -> Figures:
        """As many places as amounts up to a total need; GPU-hours always have 3."""
        if currency is None:
            return cls(None, 3)
        return cls(currency, 2 if total_micro >= 100 * MICRO else 4 if total_micro >= MICRO else 6)

    @property
    def unit(self) -> str:
        """The currency, or GPU·h."""
        return self.currency or "GPU·h"

    def text(self, value: int) -> str:
        """One value on its own, rounded half to even."""
        return self.written(round(self._quota(value)))

    def signed(self, value: int) -> str:
        """`text` with its sign."""
        text = self.text(value)
        return text if text.startswith("-") else f"+{text}"

    def together(self, values: Sequence[int]) -> list[str]:
        """Texts of values, rounded so that they add up, with their sum at the end."""
        rounded = round_together([self._quota(value) for value in values])
        return [self.written(value) for value in [*rounded, sum(rounded)]]

    def written(self, units: int) -> str:
        """An integer number of 10⁻ᵖˡᵃᶜᵉˢ units."""
        sign, (whole, _, rest) = "-" if units < 0 else "", money_text(abs(units), self.places).partition(".")
        return f"{sign}{int(whole):,}.{rest}"

    def _quota(self, value: int) -> Fraction:
        return Fraction(value * 10**self.places, HOUR_NS if self.currency is None else MICRO)
