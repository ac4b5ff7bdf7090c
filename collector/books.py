"""The books of a store: what reports, closings, explanations and budgets are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from ..costing.books import Books, all_time
from ..costing.borders import borders, reach
from ..costing.repolicy import REQUEST_COLUMNS, STEP_COLUMNS, ledger_under
from ..costing.rollup import LINE_COLUMNS, roll_ledger
from ..events import BUDGETS, CAPACITIES, CLOSINGS, LEDGER, MINUTE_NS, PRICES, REQUESTS, SHARES, STEPS, TENANTS

if TYPE_CHECKING:
    from ..costing.periods import Period
    from ..events import Run
    from ..storage.store import Store


class _Window(NamedTuple):
    """Whole minutes [from, to) in UTC ns; None sets no limit."""

    from_ns: int | None
    to_ns: int | None


def load_books(store: Store, *periods: Period, policy: str = "roofline", hourly: bool = True) -> Books:
    """The books for some periods, without any for all time.

    Where the periods' bills need them, closed time before them comes too, for corrections, and all of a budget's
    period, for what is spent of it. Another policy than the recorded one splits the stored steps again. Lines come
    added up as far as bills of exactly these periods allow; without `hourly` by days, too long for a bill by hour.
    Files that cannot be read are left out and named in the store's `warnings`.
    """
    books = Books(
        LEDGER.schema.empty_table(),
        tuple(store.runs()),
        rates=tuple(store.rates()),
        capacities=tuple(store.settings(CAPACITIES)),
        tenants=tuple(store.settings(TENANTS)),
        prices=tuple(store.settings(PRICES)),
        budgets=tuple(store.settings(BUDGETS)),
        closings=tuple(store.settings(CLOSINGS)),
    )
    window = _Window(*reach(books, periods)) if periods else _Window(None, None)
    if policy == "roofline":
        ledger = _ledger(store, books, periods, window, hourly=hourly)
    else:
        ledger = _ledger_under(store, policy, [run for run in books.runs if _within(run, window)])
    return replace(books, ledger=ledger)


def _ledger(store: Store, books: Books, periods: Sequence[Period], window: _Window, *, hourly: bool) -> pa.Table:
    """The recorded lines, added up between the minutes that the books tell apart."""
    minutes = store.extent(LEDGER)
    if minutes is None:
        return books.ledger
    first = minutes[0] if window.from_ns is None else window.from_ns
    last = minutes[1] if window.to_ns is None else window.to_ns - MINUTE_NS
    apart = borders(books, periods or [all_time(books.runs, minutes)], hourly=hourly)
    return roll_ledger(store.scan(LEDGER, LINE_COLUMNS, *window, coded=True), apart, first, last)


def _within(run: Run, window: _Window) -> bool:
    starts_before = window.to_ns is None or run.started_ns < window.to_ns
    return starts_before and (window.from_ns is None or run.wall_end_ns > window.from_ns)


def _ledger_under(store: Store, policy: str, runs: Sequence[Run]) -> pa.Table:
    ledgers = [LEDGER.schema.empty_table()]
    for run in runs:
        steps = store.scan(STEPS, STEP_COLUMNS, run.started_ns, engine_id=run.engine_id)
        shares = store.scan(SHARES, None, run.started_ns, engine_id=run.engine_id)
        requests = store.scan(REQUESTS, REQUEST_COLUMNS, run.started_ns, engine_id=run.engine_id)
        ledgers.append(ledger_under(policy, run, steps, shares, requests))
    return pa.concat_tables(ledgers)
