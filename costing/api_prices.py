"""API prices: what the same tokens would have cost, bought by the token.

A model has a price (which may be 0: free) or it has none; what has none is counted and never taken for free. The tier
is the served one. A price that names no tier is for the standard tier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import groupby, pairwise
from math import gcd, lcm
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ..events import MINUTE_NS, TokenPrice
from . import arrow
from .exact import NARROW
from .in_force import NOTHING, Dated, in_force
from .rating import MICRO, RateError, exact_price
from .segments import Bools, Ints

NO_PRICE = NOTHING
STANDARD = "standard"


class Terms(NamedTuple):
    """A price in whole steps: a token of each kind costs so many `step`s (micro-units)."""

    fresh: int
    cached: int
    output: int
    step: Fraction


class PriceList:
    """Effective-dated token prices by number.

    Raises RateError for prices that overlap, have no unit, start within a minute or are no amount of at least 0.
    """

    def __init__(self, prices: Sequence[TokenPrice]) -> None:
        self.prices = tuple(sorted(prices, key=lambda price: (_name(price), price.from_ns)))
        for name, group in groupby(self.prices, key=_name):
            for earlier, later in pairwise(group):
                if earlier.to_ns is None or later.from_ns < earlier.to_ns:
                    raise RateError(f"two prices for {' '.join(name)} hold at {later.from_ns}")
        self.terms = tuple(_terms(price) for price in self.prices)

    def of(self, ledger: pa.Table) -> Ints:
        """Number of each ledger line's price (int64[rows]), or `NO_PRICE`."""
        models = sorted({price.model for price in self.prices})
        tiers = sorted({_name(price)[1] for price in self.prices})
        tier = arrow.codes(ledger, "tier", tiers)
        if STANDARD in tiers:
            tier = np.where(arrow.equals(ledger, "tier", ""), tiers.index(STANDARD), tier)
        model = arrow.codes(ledger, "model", models)
        code = np.where((model < 0) | (tier < 0), NOTHING, model * len(tiers) + tier)
        dated = [
            Dated(number, models.index(model) * len(tiers) + tiers.index(tier), price.from_ns, price.to_ns)
            for number, price in enumerate(self.prices)
            for model, tier in [_name(price)]
        ]
        return in_force(dated, code, arrow.ints(ledger, "minute_ns"))

    def steps(self, number: Ints, prompt: Ints, cached: Ints, output: Ints) -> Ints:
        """What tokens cost in steps of their price (int64[rows]).

        Cached tokens are part of the prompt, at most all of it. Nothing for rows without a price. Raises
        RateError where that does not fit 64 bits.
        """
        if not self.terms:
            return np.zeros_like(prompt)
        kinds = np.array([[*terms[:3]] for terms in [*self.terms, Terms(0, 0, 0, Fraction(0))]], dtype=object)
        tokens = int((prompt + output).max()) if len(prompt) else 0
        if tokens * int(kinds.max()) >= NARROW:
            raise RateError("token prices have too many decimal places to be computed exactly")
        fresh_each, cached_each, output_each = kinds.astype(np.int64)[number].T
        cached = np.minimum(cached, prompt)
        return (prompt - cached) * fresh_each + cached * cached_each + output * output_each

    def is_free(self, number: Ints) -> Bools:
        """Whether each row's price is 0 (bool[rows]); no price is not."""
        return np.array([*(not any(terms[:3]) for terms in self.terms), False])[number]

    def currencies(self, numbers: Iterable[int]) -> set[str]:
        """Currencies of the prices with these numbers."""
        return {self.prices[number].currency for number in set(numbers) - {NO_PRICE}}

    def only(self, currency: str) -> PriceList:
        """The prices in one currency: what has another one has no price, as there is no conversion rate."""
        return PriceList([price for price in self.prices if price.currency == currency])


def _name(price: TokenPrice) -> tuple[str, str]:
    return price.model, price.tier or STANDARD


def _terms(price: TokenPrice) -> Terms:
    name = " ".join(_name(price))
    if price.unit_tokens < 1:
        raise RateError(f"the price for {name} needs a unit of 1 token or more")
    if price.from_ns % MINUTE_NS or (price.to_ns or 0) % MINUTE_NS:
        raise RateError(f"the price for {name} must start and end on whole minutes")
    cached = price.input_price if price.cached_price is None else price.cached_price
    each = [exact_price(text) * MICRO / price.unit_tokens for text in (price.input_price, cached, price.output_price)]
    whole = lcm(*(amount.denominator for amount in each))
    fresh, reused, output = (int(amount * whole) for amount in each)
    common = gcd(fresh, reused, output) or 1
    return Terms(fresh // common, reused // common, output // common, Fraction(common, whole))
