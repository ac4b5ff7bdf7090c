"""Borders: the minutes at which a ledger line may be treated otherwise than the minute before.

Between two of them every minute has the same day, rates, prices, team and bill, so its lines may be added up first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from ..events import MINUTE_NS
from .budgets import overlapping
from .closing_cells import thaw
from .open_time import due_in
from .periods import Period

if TYPE_CHECKING:
    from ..events import Closing
    from .books import Books


class _Dated(Protocol):
    @property
    def from_ns(self) -> int: ...
    @property
    def to_ns(self) -> int | None: ...


def borders(books: Books, periods: Sequence[Period], *, hourly: bool) -> set[int]:
    """Whole minutes (UTC ns) that bound what reports of these periods, with all they look at, tell apart.

    That is local days, with `hourly` also local hours, of the periods; the days of budgets and closed bills that the
    bills mention; and the ends of all settings, those of closed bills included. The books' ledger is not read.
    """
    found = _settings(books.rates, books.capacities, books.tenants, books.prices)
    for period in {*periods, *budget_periods(books, periods)}:
        found |= {at for day in period.days() for at in (day.from_ns, day.to_ns)}
    for period in periods if hourly else ():
        found |= {hour.from_ns for hour in period.hours()}
    return {-(-at // MINUTE_NS) * MINUTE_NS for at in chain(found, _closed(books, periods))}


def _settings(*tables: Iterable[_Dated]) -> set[int]:
    """The instants at which a record begins or ceases to hold."""
    ends = {end for record in chain(*tables) for end in (record.from_ns, record.to_ns)}
    return {end for end in ends if end is not None}


def budget_periods(books: Books, periods: Sequence[Period]) -> set[Period]:
    """The periods of budgets that a bill of some periods mentions."""
    return {own for period in periods for _, own in overlapping(books.budgets, period)}


def corrected_closings(books: Books, periods: Sequence[Period]) -> set[Closing]:
    """Closed bills whose corrections belong to one of the periods."""
    return {each for period in periods for each in due_in(books.closings, period)}


def _closed(books: Books, periods: Sequence[Period]) -> Iterator[int]:
    """Borders of closed bills that may need corrections."""
    for closing in corrected_closings(books, periods):
        terms = thaw(closing)
        yield from _settings(terms.rates, terms.capacities, terms.tenants, terms.prices)
        for day in Period(closing.period, terms.tz, closing.from_ns, closing.to_ns).days():
            yield from (day.from_ns, day.to_ns)
