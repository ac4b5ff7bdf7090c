"""Closing: freeze a period's bill, so that what was signed can be shown again to the byte.

A closing holds the bill as texts, and the lines and settings it came from. What arrives later never changes it; it
becomes correction lines of the open bill that follows. What was closed by mistake is reopened: the closing stays as
history, and the next one has the next version.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from decimal import Decimal
from hashlib import sha256
from io import StringIO
from typing import Any, Literal

from rich.console import Console

from ..errors import FareboxError, InputError
from ..events import Closing
from ..version import __version__
from .books import Books
from .closing_cells import freeze, thaw
from .closing_report import freeze_report
from .formats import to_csv, to_json
from .periods import Period, utc_text
from .rating import IdlePolicy
from .report import By, Report, build_report
from .table import ROOM, render

ClosedForm = Literal["table", "csv", "json"]


class PeriodClosed(InputError):  # noqa: N818 - it says what is the case
    """The period, or a part of it, is closed already."""


class PeriodOpen(InputError):  # noqa: N818
    """The period is not closed, or not over yet as far as the ledger tells."""


class ClosingChanged(FareboxError):  # noqa: N818
    """A closing is not what it was when it was closed."""


def close(
    books: Books,
    period: Period,
    by: Sequence[By] = ("tenant",),
    idle_policy: IdlePolicy = "separate",
    rate: Decimal | None = None,
    currency: str | None = None,
    policy: str = "roofline",
    *,
    early: bool = False,
    now_ns: int | None = None,
) -> Closing:
    """Freeze the bill of a period as `build_report` gives it; `now_ns` (UTC) is when, by default now.

    Raises PeriodClosed where it overlaps a closed period, PeriodOpen where it ends after the ledger's newest event and
    `early` does not allow that.
    """
    _refuse_closed(books, period)
    if not early:
        _refuse_open(books, period)
    report = build_report(books, period, by, idle_policy, rate, currency, policy)
    content = _content(report, books, rate)
    closed_ns = time.time_ns() if now_ns is None else now_ns
    version = 1 + sum((each.from_ns, each.to_ns) == (period.from_ns, period.to_ns) for each in books.reopened)
    return Closing(*period, version, closed_ns, _hash(content), content, None, None)


def check_reopen(closings: Sequence[Closing], period: Period) -> Closing:
    """The standing closing of exactly this period, which may be reopened.

    Raises PeriodOpen where it is not closed, PeriodClosed where a later closing holds corrections of it: they would be
    billed twice, so that one is to be reopened first.
    """
    closing = find_closing(closings, period)
    if closing is None:
        closed = ", ".join(f"{each.period} ({each.tz})" for each in closings) or "nothing"
        raise PeriodOpen(f"{period.name} ({period.tz}) is not closed; closed: {closed}")
    later = [each.period for each in closings if _carries(each, closing)]
    if later:
        raise PeriodClosed(
            f"corrections of {closing.period} are on the closed bill of {', '.join(later)}, and would be billed twice:"
            f" reopen {later[-1]} first"
        )
    return closing


def _carries(bill: Closing, closing: Closing) -> bool:
    """Whether a closed bill holds corrections of a closing; one whose layout is unknown holds none that count."""
    try:
        return any(cell.correction_of == closing.period for cell in thaw(bill).cells)
    except InputError:
        return False


def verify(closing: Closing) -> None:
    """Raise ClosingChanged unless the content is the one that was closed."""
    if _hash(closing.content) != closing.content_hash:
        raise ClosingChanged(
            f"the closing of {closing.period} was changed after {utc_text(closing.closed_ns)}: "
            f"its content no longer has the hash {closing.content_hash[:12]}…"
        )


def closed_text(closing: Closing, form: ClosedForm) -> str:
    """The closed bill as it was written when it was closed; raises ClosingChanged as `verify`."""
    verify(closing)
    content: dict[str, Any] = json.loads(closing.content)
    return content["bill"][form]


def find_closing(closings: Sequence[Closing], period: Period) -> Closing | None:
    """The closing of exactly this period, or None."""
    span = period.from_ns, period.to_ns
    return next((closing for closing in closings if (closing.from_ns, closing.to_ns) == span), None)


def _refuse_closed(books: Books, period: Period) -> None:
    for closing in books.closings:
        if closing.from_ns < period.to_ns and period.from_ns < closing.to_ns:
            when = utc_text(closing.closed_ns)
            raise PeriodClosed(
                f"{period.name} overlaps {closing.period} ({utc_text(closing.from_ns)} to {utc_text(closing.to_ns)}), "
                f"which was closed at {when}; what arrives late becomes a correction of it on the open bill that "
                "follows, and a mistake is undone with farebox report reopen"
            )
        if closing.period == period.name:
            raise PeriodClosed(
                f"another {period.name} ({closing.tz}) is closed, and corrections are told apart by name: write FROM/TO"
            )


def _refuse_open(books: Books, period: Period) -> None:
    newest = books.seen_ns
    if period.to_ns > newest:
        known = f"the newest event is from {utc_text(newest)}" if newest else "the ledger is empty"
        raise PeriodOpen(
            f"{period.name} ends at {utc_text(period.to_ns)}, but {known}: close it when it is over, or with --early if"
            " nothing more will come"
        )


def _content(report: Report, books: Books, rate: Decimal | None) -> str:
    """Canonical JSON: the same bill gives the same bytes."""
    document = {
        "farebox": __version__,
        **freeze(report, books, rate),
        "report": freeze_report(report),
        "bill": {"table": _table(report), "csv": to_csv(report), "json": to_json(report)},
    }
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _table(report: Report) -> str:
    page = StringIO()
    render(report, Console(file=page, width=ROOM, color_system=None, highlight=False))
    return page.getvalue()


def _hash(content: str) -> str:
    return sha256(content.encode()).hexdigest()
