"""What closings have to do with a bill, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .open_time import open_after, within
from .periods import Period, local_text, utc_text

if TYPE_CHECKING:
    from ..events import Closing
    from .books import Books


def closed_as(books: Books, period: Period) -> str | None:
    """The closed period in which a period lies; None where it is open, or only partly closed."""
    holds = (each.period for each in books.closings if _holds(each, period))
    return next(holds, None)


def remarks_of(books: Books, period: Period) -> tuple[str, ...]:
    """Which bills stand in place of this one, where corrections are that it has not, and what was reopened."""
    whole = closed_as(books, period)
    if whole is not None:
        return (f"{whole} is closed: the bill that stands is the one it was closed with, not this one.",)
    return (*_parts(books, period), *_elsewhere(books, period), *_reopened(books, period))


def _holds(closing: Closing, period: Period) -> bool:
    return closing.from_ns <= period.from_ns and period.to_ns <= closing.to_ns


def _parts(books: Books, period: Period) -> Iterator[str]:
    shared = [each.period for each in books.closings if each.from_ns < period.to_ns and period.from_ns < each.to_ns]
    if shared:
        yield f"{', '.join(shared)} within this period {_are(shared)} closed: the bills that stand are the closed ones."
    split = [each for each in books.closings if each.period in shared and each not in within(books.closings, period)]
    if split:
        yield "This is no bill: it cuts through a closed period, and what corrects that one is not on it."


def _elsewhere(books: Books, period: Period) -> Iterator[str]:
    """Where the corrections of earlier closed periods are, unless they are here."""
    before = [closing for closing in books.closings if closing.to_ns <= period.from_ns]
    instants = sorted({open_after(books.closings, closing) for closing in before})
    others = [local_text(at, period.tz) for at in instants if not period.from_ns <= at < period.to_ns]
    if others:
        yield (
            "Corrections of closed periods are not on this bill but on the one that holds"
            f" {' and the one that holds '.join(others)}."
        )


def _reopened(books: Books, period: Period) -> Iterator[str]:
    """What was closed once of this time; of several versions the newest."""
    newest = {(each.from_ns, each.to_ns): each for each in sorted(books.reopened, key=lambda each: each.version)}
    for closing in newest.values():
        if closing.from_ns < period.to_ns and period.from_ns < closing.to_ns:
            bill = f"version {closing.version}, SHA-256 {closing.content_hash[:12]}…"
            closed, opened = utc_text(closing.closed_ns), utc_text(closing.reopened_ns or 0)
            yield f"{closing.period} was closed at {closed} ({bill}) and reopened at {opened}: {closing.reason}."


def _are(names: list[str]) -> str:
    return "are" if len(names) > 1 else "is"
