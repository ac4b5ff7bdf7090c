"""The rate card: which rate holds for which GPU and minute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa

from ..events import Rate, RateScope
from . import arrow
from .in_force import Dated, in_force
from .rating import NARROWEST_FIRST, RateError, check_rates, exact_price, holds
from .segments import Ints

NO_RATE = -1
"""The number of no rate at all."""
_COLUMNS: dict[RateScope, str] = {"engine": "engine_id", "host": "host", "gpu_type": "gpu_type"}


class RateCard:
    """Effective-dated rates by number; the narrowest scope that fits wins, for a minute the one at its start.

    Raises RateError for rates that `check_rates` refuses or whose price is none.
    """

    def __init__(self, rates: Sequence[Rate]) -> None:
        check_rates(rates)
        self.rates = tuple(sorted(rates, key=lambda rate: (rate.scope, rate.name, rate.from_ns)))
        self.prices: tuple[Fraction, ...] = tuple(exact_price(rate.per_gpu_hour) for rate in self.rates)

    @classmethod
    def single(cls, per_gpu_hour: Decimal, currency: str) -> RateCard:
        """One rate for everything, as given for one report."""
        return cls([Rate("any", "", currency, f"{per_gpu_hour:f}", None, 0, None, "given for this report")])

    def at(self, at_ns: int, gpu_type: str, host: str, engine_id: str = "") -> int:
        """Number of the rate in force at an instant, or `NO_RATE`."""
        wanted = {"engine": engine_id, "host": host, "gpu_type": gpu_type, "any": ""}
        for scope in NARROWEST_FIRST:
            for number, rate in enumerate(self.rates):
                if (rate.scope, rate.name) == (scope, wanted[scope]) and holds(rate.from_ns, rate.to_ns, at_ns):
                    return number
        return NO_RATE

    def of(self, ledger: pa.Table, engines: bool = True) -> Ints:
        """Number of each ledger line's rate (int64[rows]); without `engines` what its host costs otherwise."""
        minutes = arrow.ints(ledger, "minute_ns")
        found = np.full(len(minutes), NO_RATE, np.int64)
        for scope in reversed(NARROWEST_FIRST):
            rates = [(number, rate) for number, rate in enumerate(self.rates) if rate.scope == scope]
            if not rates or (scope == "engine" and not engines):
                continue
            names = sorted({rate.name for _, rate in rates})
            dated = [Dated(number, names.index(rate.name), rate.from_ns, rate.to_ns) for number, rate in rates]
            codes = arrow.codes(ledger, _COLUMNS[scope], names) if scope in _COLUMNS else np.zeros_like(minutes)
            narrower = in_force(dated, codes, minutes)
            found = np.where(narrower == NO_RATE, found, narrower)
        return found

    def cuts(self, from_ns: int, to_ns: int) -> list[int]:
        """The instants within (from, to) at which some rate starts or ends."""
        ends = {rate.from_ns for rate in self.rates} | {rate.to_ns for rate in self.rates if rate.to_ns is not None}
        return sorted(at for at in ends if from_ns < at < to_ns)

    def used(self, numbers: Iterable[int]) -> tuple[Rate, ...]:
        """The rates of these numbers."""
        return tuple(self.rates[number] for number in sorted(set(numbers) - {NO_RATE}))

    def currency(self, used: Sequence[Rate], wanted: str | None) -> str:
        """The one currency of the rates used; where none is, the one wanted, the one of all rates, or USD.

        Raises RateError when the rates are in different currencies, or not in the wanted one.
        """
        found = sorted({rate.currency for rate in used})
        if len(found) > 1:
            raise RateError(
                f"rates in {' and '.join(found)} cannot be added in one report: there is no conversion rate; "
                "give one price for everything with --rate and --currency"
            )
        if found and wanted and found[0] != wanted:
            raise RateError(f"the rates are in {found[0]}, not {wanted}: there is no conversion rate")
        known = {rate.currency for rate in self.rates}
        return found[0] if found else wanted or (known.pop() if len(known) == 1 else "USD")
