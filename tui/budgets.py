"""Budgets in words: how much of one is spent, and the one to worry about."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from . import money
from .line import Line, Role

if TYPE_CHECKING:
    from .glyphs import Glyphs
    from .snapshot import BudgetRow, Snapshot

MARK = "▲"
TEAM_MAX = 24


def spent_percent(budget: BudgetRow | None) -> str:
    """Part of the hard limit, or else of the soft one, with a mark above a limit: `89 %`, `▲ 105 %`; `–` if unknown.

    Whole percents that are reached: 100 means that all of it is spent.
    """
    if budget is None:
        return "–"
    limit, mark = _limit(budget), f"{MARK} " if role_of(budget) else ""
    if budget.spent_micro is None or not limit:
        return f"{mark}–"
    percent = budget.spent_micro * 100 // limit
    if percent > 999:
        return f"{mark.strip()}>999 %"
    return f"{mark}<1 %" if percent == 0 and budget.spent_micro else f"{mark}{percent} %"


def role_of(budget: BudgetRow | None) -> Role:
    """The colour of a budget: a warning above soft, an error above hard."""
    above: dict[str, Role] = {"above soft": "warn", "above hard": "bad"}
    return above.get(budget.state, "") if budget else ""


def budget_line(snapshot: Snapshot, width: int, glyphs: Glyphs) -> Line | None:
    """The worst budget that is broken, will be, or is not known, in as many words as fit; None when all is well."""
    budget = snapshot.budgets[0] if snapshot.budgets else None
    if budget is None or not severity(budget):
        return None
    told = _unknown(budget, glyphs) if budget.spent_micro is None else _known(budget, glyphs)
    texts = [glyphs.text(f"{MARK} {text}") for text in told]
    fitting = next((text for text in texts if cell_len(text) <= width), glyphs.fit(texts[-1], width))
    return [(fitting, role_of(budget) or "warn")]


class Outlook(NamedTuple):
    """What is to be told of a budget."""

    title: str
    cause: str
    step: str


def outlook(budget: BudgetRow) -> Outlook | None:
    """What an alert says of a budget; None when there is nothing to worry about."""
    if not severity(budget):
        return None
    if budget.spent_micro is None:
        why = budget.reason or "it was not told why"
        step = "Set the missing rates: farebox rates"
        return Outlook(f"what {budget.team} has spent for {budget.period} is not known", f"{why}.", step)
    told, brief = _outlook(budget)
    cause = f"{budget.team} has spent {_amounts(budget)} for {budget.period}, {told}."
    why = f"farebox explain STORE {_before(budget.period)} {budget.period} says why"
    step = f"{why}; farebox report STORE --by team who pays."
    return Outlook(f"{budget.team}'s budget for {budget.period}: {brief}", cause, step)


def _known(budget: BudgetRow, glyphs: Glyphs) -> list[str]:
    """What is wrong, from all words to the fewest."""
    team = glyphs.fit(budget.team, TEAM_MAX)
    spent, whole = _amounts(budget), f" for {budget.period}"
    outlook, brief = _outlook(budget)
    step = f"farebox explain STORE {_before(budget.period)} {budget.period}"
    return [
        f"{team} has spent {spent}{whole}, {outlook}: {step} shows why",
        f"{team}: {spent} spent{whole}, {brief}: {step}",
        f"{team}: {spent} spent{whole}, {brief}: see farebox explain",
        f"{team}: {spent} spent, {brief}: see farebox explain",
        f"{team}: {spent} spent, {brief}",
    ]


def _unknown(budget: BudgetRow, glyphs: Glyphs) -> list[str]:
    team, why = glyphs.fit(budget.team, TEAM_MAX), glyphs.name(budget.reason or "")
    return [f"What {team} has spent for {budget.period} is not known: {why}", f"{team}: spending not known: {why}"]


def _outlook(budget: BudgetRow) -> tuple[str, str]:
    """What happens to its limits, and the same in few words."""
    soft = f"its soft limit of {_amount(budget.soft_micro or 0, budget)}"
    if budget.state == "above hard":
        return "more than its hard limit", "above its hard limit"
    if budget.hard_day is not None:
        by = _day(budget.hard_day)
        return f"at this pace all of it by {by}", f"all of it by {by}"
    if budget.state == "above soft":
        return f"above {soft}", "above its soft limit"
    by = _day(budget.soft_day or "")
    return f"at this pace {soft} by {by}", f"soft limit by {by}"


def severity(budget: BudgetRow) -> int:
    """How much there is to worry about; 0: nothing."""
    if budget.state in ("above soft", "above hard"):
        return 5 if budget.state == "above hard" else 4
    if budget.hard_day is not None or budget.soft_day is not None:
        return 3 if budget.hard_day is not None else 2
    return 1 if budget.state == "unknown" else 0


def _limit(budget: BudgetRow) -> int | None:
    return budget.soft_micro if budget.hard_micro is None else budget.hard_micro


def part(budget: BudgetRow) -> Fraction:
    """How much of its limit is spent; 0 where that is not known."""
    limit = _limit(budget)
    return Fraction(budget.spent_micro or 0, limit) if limit else Fraction(0)


def _amounts(budget: BudgetRow) -> str:
    """`3.56 of 4.00 USD`, or `3.56 USD` where there is no hard limit."""
    spent = _amount(budget.spent_micro or 0, budget)
    whole = "" if budget.hard_micro is None else f" of {_amount(budget.hard_micro, budget)}"
    return f"{spent}{whole} {budget.currency}"


def _amount(micro: int, budget: BudgetRow) -> str:
    """In cents, or in all the decimals there are where the limit is below one unit."""
    places = 2 if (_limit(budget) or 0) >= money.MICRO else 6
    return f"{Decimal(money.rounded([micro], places)[0]).scaleb(-places):,f}"


def _day(day: str) -> str:
    """`18 Oct`."""
    at = date.fromisoformat(day)
    return f"{at.day} {at:%b}"


def _before(period: str) -> str:
    """The name of the period before: of 2026-10 it is 2026-09."""
    year, *rest = map(int, period.split("-"))
    month, day = [*rest, 1, 1][:2]
    if not rest:
        return f"{year - 1:04}"
    before = date(year, month, day) - timedelta(days=1)
    return before.isoformat()[: len(period)]
