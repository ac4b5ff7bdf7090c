"""Corrections: what a closed period's bill would be now, minus what it was closed with.

A closed bill stays as it is. What arrives late is booked at the first instant after everything that is closed, so it is
in exactly one bill, and the sum of all bills is what the ledger says.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any

from ..errors import InputError
from ..events import Closing
from .api_prices import PriceList
from .books import Books
from .cell import MONEY, NAMES, NUMBERS, PricedCell, cells_from_arrow
from .closing_cells import Frozen, thaw
from .periods import Period
from .pricing import Terms, price_ledger
from .published import publish
from .rate_card import RateCard
from .teams import Register

_Key = tuple[str | int | None, ...]
_SUMS = NUMBERS + MONEY


def corrections(books: Books, period: Period, policy: str = "roofline") -> tuple[PricedCell, ...]:
    """Cells that correct closed periods before `period`, each with `correction_of` and only what changed.

    None unless the period holds the first instant after all closed ones. A closed period is priced again with its own
    rates, capacities, tenants and idle policy, so later settings change nothing.

    Raises InputError where one was closed under another `policy` than the books' ledger is split by: the two splits
    differ everywhere, and that is no correction.
    """
    closed_until = max((closing.to_ns for closing in books.closings), default=None)
    if closed_until is None or not period.from_ns <= closed_until < period.to_ns:
        return ()
    frozen = {closing: thaw(closing) for closing in books.closings if closing.to_ns <= period.from_ns}
    found: list[PricedCell] = []
    for closing, terms in frozen.items():
        if terms.policy != policy:
            raise InputError(
                f"{closing.period} was closed with --policy {terms.policy}, and its corrections belong to this bill:"
                f" ask for --policy {terms.policy} here as well"
            )
        billed = [cell for cell in terms.cells if not cell.correction_of]
        for later in frozen.values():
            billed += [cell for cell in later.cells if cell.correction_of == closing.period]
        found += _difference(_now(books, closing, terms), billed, closing.period)
    return tuple(found)


def _now(books: Books, closing: Closing, frozen: Frozen) -> list[PricedCell]:
    """What the ledger says today of a closed window, on the terms it was closed with."""
    period = Period(closing.period, frozen.tz, closing.from_ns, closing.to_ns)
    card, register = RateCard(frozen.rates), Register(frozen.tenants)
    terms = Terms(period, card, register, PriceList(frozen.prices), frozen.idle_policy, hourly=False)
    then = replace(books, rates=frozen.rates, capacities=frozen.capacities, tenants=frozen.tenants)
    return list(cells_from_arrow(publish(price_ledger(then, terms), terms)))


def _difference(now: list[PricedCell], billed: list[PricedCell], name: str) -> list[PricedCell]:
    """What `now` has more than `billed`, cell by cell, where anything differs."""
    sums: defaultdict[_Key, dict[str, int]] = defaultdict(dict)
    for sign, cells in ((1, now), (-1, billed)):
        for cell in cells:
            key = tuple(name if column == "correction_of" else getattr(cell, column) for column in NAMES)
            for column in _SUMS:
                value = getattr(cell, column)
                if value is not None:
                    sums[key][column] = sums[key].get(column, 0) + sign * value
    result: list[PricedCell] = []
    for key, values in sums.items():
        if any(values.values()):
            row: dict[str, Any] = {**dict.fromkeys(NUMBERS, 0), **dict.fromkeys(MONEY), **values}
            row |= zip(NAMES, key, strict=True)
            result.append(PricedCell(**row))
    return result
