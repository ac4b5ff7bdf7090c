"""Corrections: what a closed period's bill would be now, minus what it was closed with and corrected by since.

A closed bill stays as it is. What arrives late goes to the open bill that follows it (`open_time`), so it is on exactly
one, and the sum of all bills is what the ledger says, in whatever order periods are closed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import InputError
from ..events import Closing
from .api_prices import PriceList
from .books import Books
from .cell import MONEY, NAMES, NUMBERS, PricedCell, cells_from_arrow
from .closing_cells import Frozen, thaw
from .open_time import due_in, within
from .periods import Period
from .pricing import Terms, price_ledger
from .published import publish
from .rate_card import RateCard
from .teams import Register, relabelled

_Key = tuple[str | int | None, ...]
_SUMS = NUMBERS + MONEY


class Correction(NamedTuple):
    """What corrects one closed period, in the currencies that it was closed in."""

    of: str
    currency: str
    api_currency: str | None
    cells: tuple[PricedCell, ...]
    """Each with `correction_of` and only what changed."""


def corrections(books: Books, period: Period, policy: str = "roofline") -> list[Correction]:
    """What corrects closed periods on the bill of `period`; the books' ledger is split by `policy`.

    That is what closings before it still miss, where it is the open bill that follows them, and what closed bills
    within it were corrected by. A closed period is priced again with its own rates, capacities, tenants, idle policy
    and policy, so later settings change nothing. Raises InputError where the books lack its ledger under its policy.
    """
    inside = within(books.closings, period)
    found = [_missing(books, closing, policy) for closing in due_in(books.closings, period)]
    for closing in books.closings:
        if inside and closing not in inside:
            carried = _carried(books, closing, inside)
            found.append(_correction(closing, _difference(carried, (), closing.period)))
    return [correction for correction in found if correction.cells]


def corrected_cells(found: Iterable[Correction], currency: str, api_currency: str | None) -> tuple[PricedCell, ...]:
    """The cells of corrections for a bill in a currency; raises InputError where one is in another.

    What tokens would cost by the token in another currency than `api_currency` has no price here.
    """
    cells: list[PricedCell] = []
    for correction in found:
        if correction.currency != currency and any(cell.amount_micro for cell in correction.cells):
            raise InputError(
                f"{correction.of} was closed in {correction.currency}, and its corrections belong to this bill, which"
                f" is in {currency}: there is no conversion rate. Reopen {correction.of} (farebox report reopen) and"
                " close it again, or ask for this bill with --rate and --currency"
            )
        same = correction.api_currency in (None, api_currency)
        cells += correction.cells if same else map(_without_price, correction.cells)
    return tuple(cells)


def _missing(books: Books, closing: Closing, policy: str) -> Correction:
    """What a closed period's bills miss of what the ledger says today."""
    frozen = thaw(closing)
    own = (cell for cell in frozen.cells if not cell.correction_of)
    billed = [*relabelled(own, frozen.tenants, frozen.renames, books.renames)]
    billed += _carried(books, closing, books.closings)
    return _correction(closing, _difference(_now(books, closing, frozen, policy), billed, closing.period))


def _correction(closing: Closing, cells: tuple[PricedCell, ...]) -> Correction:
    frozen = thaw(closing)
    return Correction(closing.period, frozen.currency, frozen.api_currency, cells)


def _carried(books: Books, closing: Closing, bills: Iterable[Closing]) -> list[PricedCell]:
    """What closed bills hold as corrections of a closing, teams by their names of today."""
    cells: list[PricedCell] = []
    for bill in bills:
        mine = (cell for cell in thaw(bill).cells if cell.correction_of == closing.period)
        cells += relabelled(mine, thaw(closing).tenants, thaw(bill).renames, books.renames)
    return cells


def _now(books: Books, closing: Closing, frozen: Frozen, policy: str) -> list[PricedCell]:
    """What the ledger says today of a closed window, on the terms it was closed with."""
    ledger = books.ledger if frozen.policy == policy else books.ledgers.get(frozen.policy)
    if ledger is None:
        raise InputError(
            f"{closing.period} was closed with --policy {frozen.policy}, and its corrections belong to this bill:"
            " they need its ledger under that policy"
        )
    period = Period(closing.period, frozen.tz, closing.from_ns, closing.to_ns)
    card, register = RateCard(frozen.rates), Register(frozen.tenants, books.renames)
    terms = Terms(period, card, register, PriceList(frozen.prices), frozen.idle_policy, hourly=False)
    then = replace(books, ledger=ledger, rates=frozen.rates, capacities=frozen.capacities, tenants=frozen.tenants)
    return list(cells_from_arrow(publish(price_ledger(then, terms), terms)))


def _difference(now: Iterable[PricedCell], billed: Iterable[PricedCell], name: str) -> tuple[PricedCell, ...]:
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
    return tuple(result)


def _without_price(cell: PricedCell) -> PricedCell:
    if cell.api_micro is None:
        return cell
    return cell._replace(api_micro=None, unpriced_tokens=cell.prompt_tokens + cell.output_tokens)
