"""What GPU time cost so far, by the rates of the store: exact sums, rounded only on the page."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction

from ...costing.rating import HOUR_NS, RateError, exact_price, find_rate
from ...events import Rate
from ..totals import Owner, Place


class Money:
    """Amounts by owner and currency; what has no rate is counted in `unpriced` (GPU·ns by engine)."""

    def __init__(self) -> None:
        self.unpriced: Counter[str] = Counter()
        self._spent: defaultdict[tuple[Owner, str], Fraction] = defaultdict(Fraction)

    def add(self, used: Mapping[tuple[Owner, Place], int], rates: list[Rate]) -> None:
        """Price GPU time (ns) by the rates that held in its minute."""
        for (owner, place), gpu_ns in used.items():
            if not gpu_ns:
                continue
            try:
                rate = find_rate(rates, place.gpu_type, place.minute_ns, place.host, place.engine_id)
            except RateError:
                rate = None
            if rate is None:
                self.unpriced[place.engine_id] += gpu_ns
            else:
                self._spent[owner, rate.currency] += exact_price(rate.per_gpu_hour) * gpu_ns / HOUR_NS

    def amounts(self) -> dict[tuple[Owner, str], float]:
        """What was spent, in whole units of the currency."""
        return {key: float(amount) for key, amount in self._spent.items()}
