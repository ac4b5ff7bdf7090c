"""The budget watch: how budgets stand now, put into the store for screens, which only read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING

from ..costing.budgets import BudgetStatus, budget_period
from ..costing.periods import Period
from ..costing.report import build_report
from ..errors import InputError
from ..events import BUDGET_STATES, BUDGETS, Budget, BudgetState
from .books import load_books

if TYPE_CHECKING:
    from ..costing.books import Books
    from ..storage.store import Store

WAIT_S = 60.0
REST = 20
"""Looking takes at most one part in so many of the recorder's time, however long the ledger is."""


class BudgetWatch:
    """Looks at a store's budgets from time to time. `clock` gives seconds of real time; tests pass their own."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._due_s = clock()

    def look_if_due(self) -> None:
        """Look, unless that was done within the last minute."""
        if self._clock() >= self._due_s:
            self.look()

    def look(self) -> None:
        """Put how the budgets stand into the store."""
        began_s = self._clock()
        put_states(self._store)
        ended_s = self._clock()
        self._due_s = ended_s + max(WAIT_S, REST * (ended_s - began_s))


def put_states(store: Store) -> list[BudgetState]:
    """Find how the budgets stand that hold at the newest instant recorded, and keep it in the store."""
    states = budget_states(store)
    if states:
        with store.changing() as settings:
            for state in states:
                settings.put(BUDGET_STATES, state)
    return states


def budget_states(store: Store) -> list[BudgetState]:
    """How the budgets stand that hold at the newest instant recorded; none before there is a run.

    What cannot be told (rates in another currency, a damaged file) is a state with a reason, never an error.
    """
    budgets: list[Budget] = store.settings(BUDGETS)
    runs = store.runs() if budgets else []
    if not runs:
        return []
    now_ns = max(run.wall_end_ns for run in runs)
    held = [budget for budget in budgets if _holds(budget, now_ns)]
    if not held:
        return []
    books = load_books(store, *map(budget_period, held), hourly=False)
    if store.warnings:
        return [_unknown(budget, now_ns, store.warnings[0]) for budget in held]
    return [state for group in _by_currency(held) for state in _states(books, group, now_ns)]


def _states(books: Books, budgets: Sequence[Budget], now_ns: int) -> list[BudgetState]:
    """Budgets of one currency, which all rates of their time must share."""
    own = replace(books, budgets=tuple(budgets), closings=())
    try:
        bill = build_report(own, _span(budgets), by=("team",), currency=budgets[0].currency)
    except InputError as error:
        return [_unknown(budget, now_ns, str(error)) for budget in budgets]
    return [_known(status) for status in bill.budgets]


def _known(status: BudgetStatus) -> BudgetState:
    budget = status.budget
    return BudgetState(
        *(budget.team, budget.period, budget.tz, budget.currency),
        spent_micro=status.spent_micro,
        per_day_micro=status.per_day_micro,
        soft_micro=budget.soft_micro,
        hard_micro=budget.hard_micro,
        soft_day=status.soft_day,
        hard_day=status.hard_day,
        state=status.state,
        reason=status.reason,
        seen_ns=status.seen_ns,
    )


def _unknown(budget: Budget, seen_ns: int, reason: str) -> BudgetState:
    return BudgetState(
        *(budget.team, budget.period, budget.tz, budget.currency),
        spent_micro=None,
        per_day_micro=None,
        soft_micro=budget.soft_micro,
        hard_micro=budget.hard_micro,
        soft_day=None,
        hard_day=None,
        state="unknown",
        reason=reason,
        seen_ns=seen_ns,
    )


def _holds(budget: Budget, at_ns: int) -> bool:
    """Whether an instant is within its period, the very end included: then all of it was seen."""
    period = budget_period(budget)
    return period.from_ns <= at_ns <= period.to_ns


def _span(budgets: Sequence[Budget]) -> Period:
    periods = [budget_period(budget) for budget in budgets]
    return Period.between(min(p.from_ns for p in periods), max(p.to_ns for p in periods))


def _by_currency(budgets: Sequence[Budget]) -> Iterator[list[Budget]]:
    def currency(budget: Budget) -> str:
        return budget.currency

    return (list(group) for _, group in groupby(sorted(budgets, key=currency), key=currency))
