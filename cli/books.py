"""The books of a store: what reports, closings and explanations are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from ..costing.books import Books
    from ..costing.periods import Period
    from ..events import Run
    from ..storage.store import Store


def load_books(store: Store, *periods: Period, policy: str = "roofline", hourly: bool = True) -> Books:
    """The books for some periods, without any for all time.

    Closed time before them comes too, for corrections, and all of a budget's period, for what is spent of it. Another
    policy than the recorded one splits the stored steps again. Lines come added up as far as bills of exactly these
    periods allow; without `hourly` by days, too long for a bill by hour.
    """
    from ..costing.books import Books
    from ..costing.budgets import budget_period
    from ..events import BUDGETS, CAPACITIES, CLOSINGS, LEDGER, PRICES, TENANTS

    closings = store.settings(CLOSINGS)
    budgets = store.settings(BUDGETS)
    spans = [(each.from_ns, each.to_ns) for each in (*periods, *closings, *map(budget_period, budgets))]
    start_ns = min(start for start, _ in spans) if periods else None
    end_ns = max(end for _, end in spans) if periods else None
    books = Books(
        LEDGER.schema.empty_table(),
        tuple(store.runs()),
        rates=tuple(store.rates()),
        capacities=tuple(store.settings(CAPACITIES)),
        tenants=tuple(store.settings(TENANTS)),
        prices=tuple(store.settings(PRICES)),
        budgets=tuple(budgets),
        closings=tuple(closings),
    )
    if policy == "roofline":
        ledger = _ledger(store, books, periods, start_ns, end_ns, hourly=hourly)
    else:
        ledger = _ledger_under(store, policy, [run for run in books.runs if _within(run, start_ns, end_ns)])
    return replace(books, ledger=ledger)


def _ledger(
    store: Store, books: Books, periods: Sequence[Period], start_ns: int | None, end_ns: int | None, *, hourly: bool
) -> pa.Table:
    """The recorded lines, added up between the minutes that the books tell apart."""
    from ..costing.books import all_time
    from ..costing.borders import borders
    from ..costing.rollup import LINE_COLUMNS, roll_ledger
    from ..events import LEDGER

    minutes = _extent(store, start_ns, end_ns)
    if minutes is None:
        return books.ledger
    apart = borders(books, periods or [all_time(books.runs, minutes)], hourly=hourly)
    return roll_ledger(store.scan(LEDGER, LINE_COLUMNS, start_ns, end_ns, coded=True), apart, *minutes)


def _extent(store: Store, start_ns: int | None, end_ns: int | None) -> tuple[int, int] | None:
    """The minutes of the first and the last ledger line in [start, end), UTC ns; None without lines."""
    import pyarrow.compute as pc

    from ..events import LEDGER

    compute: Any = pc
    ends = [
        compute.min_max(batch.column(LEDGER.time)).values()
        for batch in store.scan(LEDGER, (LEDGER.time,), start_ns, end_ns)
        if batch.num_rows
    ]
    if not ends:
        return None
    return min(first.as_py() for first, _ in ends), max(last.as_py() for _, last in ends)


def _within(run: Run, start_ns: int | None, end_ns: int | None) -> bool:
    return (end_ns is None or run.started_ns < end_ns) and (start_ns is None or run.wall_end_ns > start_ns)


def _ledger_under(store: Store, policy: str, runs: list[Run]) -> pa.Table:
    import pyarrow as pa

    from ..costing.repolicy import REQUEST_COLUMNS, STEP_COLUMNS, ledger_under
    from ..events import LEDGER, REQUESTS, SHARES, STEPS

    ledgers = [LEDGER.schema.empty_table()]
    for run in runs:
        steps = store.scan(STEPS, STEP_COLUMNS, run.started_ns, engine_id=run.engine_id)
        shares = store.scan(SHARES, None, run.started_ns, engine_id=run.engine_id)
        requests = store.scan(REQUESTS, REQUEST_COLUMNS, run.started_ns, engine_id=run.engine_id)
        ledgers.append(ledger_under(policy, run, steps, shares, requests))
    return pa.concat_tables(ledgers)
