"""The books of a store: what reports, closings, explanations and budgets are made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ..costing.books import Books, all_time
from ..costing.borders import borders, budget_periods, corrected_closings
from ..costing.closing_cells import thaw
from ..costing.repolicy import ledger_under, only_requests
from ..costing.rollup import LINE_COLUMNS, roll_ledger
from ..costing.stored_steps import STEP_COLUMNS
from ..events import BUDGETS, CAPACITIES, CLOSINGS, LEDGER, MINUTE_NS, PRICES, SHARES, STEPS, TEAM_RENAMES, TENANTS

if TYPE_CHECKING:
    from ..costing.periods import Period
    from ..events import Closing, Run
    from ..storage.store import Store


class _Window(NamedTuple):
    """Whole minutes [from, to) in UTC ns; None sets no limit."""

    from_ns: int | None
    to_ns: int | None


def load_books(store: Store, *periods: Period, policy: str = "roofline", hourly: bool = True) -> Books:
    """The books for some periods, without any for all time.

    Closed time that these periods correct comes too, under the policy it was closed with, and all of a budget's
    period, for what is spent of it. Another policy than the recorded one splits the stored steps again. Lines come
    added up as far as bills of exactly these periods allow; without `hourly` by days, too long for a bill by hour.
    Files that cannot be read are left out and named in the store's `warnings`.
    """
    closings: list[Closing] = store.settings(CLOSINGS)
    books = Books(
        LEDGER.schema.empty_table(),
        tuple(store.runs()),
        rates=tuple(store.rates()),
        capacities=tuple(store.settings(CAPACITIES)),
        tenants=tuple(store.settings(TENANTS)),
        renames=tuple(store.settings(TEAM_RENAMES)),
        prices=tuple(store.settings(PRICES)),
        budgets=tuple(store.settings(BUDGETS)),
        closings=tuple(closing for closing in closings if closing.stands),
        reopened=tuple(closing for closing in closings if not closing.stands),
    )
    due = _due(books, periods)
    own = [*periods, *budget_periods(books, periods), *due.pop(policy, ())]
    runs: list[Run] = []
    ledger = _ledger(store, books, policy, periods, _around(own), runs, hourly=hourly)
    others = {
        other: _ledger(store, books, other, periods, _around(closed), hourly=False) for other, closed in due.items()
    }
    return replace(books, ledger=ledger, ledgers=others, runs=tuple(runs) or books.runs)


def _due(books: Books, periods: Sequence[Period]) -> dict[str, list[Closing]]:
    """The closings whose corrections belong to the periods, by the policy they were closed with."""
    found: defaultdict[str, list[Closing]] = defaultdict(list)
    for closing in corrected_closings(books, periods):
        found[thaw(closing).policy].append(closing)
    return dict(found)


def _around(parts: Sequence[Period | Closing]) -> _Window:
    """From the first start to the last end; all time around nothing."""
    if not parts:
        return _Window(None, None)
    return _Window(min(part.from_ns for part in parts), max(part.to_ns for part in parts))


def _ledger(
    store: Store,
    books: Books,
    policy: str,
    periods: Sequence[Period],
    window: _Window,
    runs: list[Run] | None = None,
    *,
    hourly: bool,
) -> pa.Table:
    """The ledger of a window under a policy, recorded lines added up between the minutes that the books tell apart.

    `runs` gets the runs as that ledger knows them, for a process may be recording.
    """
    recorded = _recorded(store, books, periods, window, runs, hourly=hourly)
    if policy == "roofline":
        return recorded
    return _ledger_under(store, policy, [run for run in books.runs if _within(run, window)], recorded)


def _recorded(
    store: Store,
    books: Books,
    periods: Sequence[Period],
    window: _Window,
    runs: list[Run] | None,
    *,
    hourly: bool,
) -> pa.Table:
    lines = store.scan(LEDGER, LINE_COLUMNS, *window, coded=True, runs=runs)
    head = next(lines, None)
    minutes = store.extent(LEDGER)  # asked after the lines are known, so that none of them lies outside
    if head is None or minutes is None:
        return books.ledger
    first = minutes[0] if window.from_ns is None else window.from_ns
    last = minutes[1] if window.to_ns is None else window.to_ns - MINUTE_NS
    apart = borders(books, periods or [all_time(books.runs, minutes)], hourly=hourly)
    return roll_ledger(chain([head], lines), apart, first, last)


def _within(run: Run, window: _Window) -> bool:
    starts_before = window.to_ns is None or run.started_ns < window.to_ns
    return starts_before and (window.from_ns is None or run.wall_end_ns > window.from_ns)


def _ledger_under(store: Store, policy: str, runs: Sequence[Run], recorded: pa.Table) -> pa.Table:
    """The ledger of runs under another policy; how many requests there were the `recorded` ledger says.

    The requests themselves may have been erased.
    """
    ledgers = [only_requests(recorded)]
    for run in runs:
        steps = store.scan(STEPS, STEP_COLUMNS, run.started_ns, engine_id=run.engine_id)
        shares = store.scan(SHARES, None, run.started_ns, engine_id=run.engine_id)
        ledgers.append(ledger_under(policy, run, steps, shares))
    return pa.concat_tables(ledgers)
