"""The two bills that an explanation compares: a closed one as it was closed, an open one as far as it goes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from ..errors import InputError
from ..events import MINUTE_NS, Closing
from .books import Books
from .cell import PricedCell
from .closing import find_closing, verify
from .closing_cells import thaw
from .closing_report import thaw_report
from .periods import Period, local_text, utc_text
from .rating import IdlePolicy
from .report import Report, build_report
from .teams import relabelled


class Asked(NamedTuple):
    """How bills are to be made; null: as they were closed, or else by default."""

    idle_policy: IdlePolicy | None = None
    rate: Decimal | None = None
    currency: str | None = None


class Side(NamedTuple):
    """One of the two bills."""

    report: Report
    cells: tuple[PricedCell, ...]
    """Its finest lines, teams by their names of today."""
    note: str
    """What a reader must know of it; empty: nothing."""
    is_provisional: bool


def common_policy(closings: Sequence[Closing], periods: Sequence[Period]) -> str:
    """The policy by which open bills are made to compare with closed ones: theirs, where they have one in common."""
    found = {thaw(closing).policy for closing in _closings(closings, periods)}
    return found.pop() if len(found) == 1 else "roofline"


def _common_idle(closings: Sequence[Closing], periods: Sequence[Period]) -> IdlePolicy:
    found: set[IdlePolicy] = {thaw(closing).idle_policy for closing in _closings(closings, periods)}
    return found.pop() if len(found) == 1 else "separate"


def sides_of(
    books: Books, periods: Sequence[Period], asked: Asked, policy: str, now_ns: int | None = None
) -> list[Side]:
    """The bills of periods; `policy` is that of the books' ledger, `now_ns` (UTC) the time of day.

    Raises InputError for a period that has not begun.
    """
    idle = asked.idle_policy or _common_idle(books.closings, periods)
    today_ns = -(-max(books.seen_ns, time.time_ns() if now_ns is None else now_ns) // MINUTE_NS) * MINUTE_NS
    return [_closed(books, period, asked) or _open(books, period, asked, idle, policy, today_ns) for period in periods]


def differing_methods(sides: Sequence[Side]) -> str:
    """How two bills were made by different methods; empty: they were not."""
    words = sorted({f"steps split by {side.report.policy}, idle {side.report.idle_policy}" for side in sides})
    return f"The bills were made differently ({'; '.join(words)}): that moves amounts, too." if words[1:] else ""


def _closings(closings: Sequence[Closing], periods: Sequence[Period]) -> list[Closing]:
    found = (find_closing(closings, period) for period in periods)
    return [closing for closing in found if closing is not None]


def _closed(books: Books, period: Period, asked: Asked) -> Side | None:
    """A closed bill from its frozen lines; None where the period is open, or another method is asked for."""
    closing = find_closing(books.closings, period)
    if closing is None or not thaw(closing).is_asked(None, *asked, policy=None):
        return None
    verify(closing)
    frozen, report = thaw(closing), thaw_report(closing)
    cells = tuple(relabelled(report.cells, frozen.tenants, frozen.renames, books.renames))
    return Side(report, cells, f"{period.name} is as it was closed at {utc_text(closing.closed_ns)}.", False)


def _open(books: Books, period: Period, asked: Asked, idle_policy: IdlePolicy, policy: str, today_ns: int) -> Side:
    """A bill from the ledger, until now where the period is not over."""
    if period.from_ns >= today_ns:
        raise InputError(
            f"{period.name} begins at {utc_text(period.from_ns)}, which is still to come: there is nothing to explain"
        )
    end_ns = min(period.to_ns, today_ns)
    billed = period._replace(to_ns=end_ns)
    report = build_report(books, billed, ("tenant",), idle_policy, asked.rate, asked.currency, policy)
    notes: list[str] = []
    if find_closing(books.closings, period) is not None:
        notes.append(f"{period.name} is closed otherwise; here it is computed anew, as asked.")
    elif report.closed_as is not None:
        notes.append(
            f"{period.name} lies within {report.closed_as}, which is closed: the bill that stands is the closed one;"
            " here it is computed anew, at the rates of today."
        )
    if end_ns < period.to_ns:
        notes.append(
            f"{period.name} so far, to {local_text(end_ns, period.tz)}: it is not over, and its lines can still grow."
        )
    return Side(report, report.cells, " ".join(notes), end_ns < period.to_ns)
