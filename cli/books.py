"""The books of a store: what reports, closings and explanations are made from."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from ..costing.books import Books
    from ..costing.periods import Period
    from ..events import Run
    from ..storage.store import Store


def load_books(store: Store, *periods: Period, policy: str = "roofline") -> Books:
    """The books for some periods, without any for all time.

    Closed time before them comes too, for corrections, and all of a budget's period, for what is spent of it. Another
    policy than the recorded one splits the stored steps again.
    """
    from ..costing.books import Books
    from ..costing.budgets import budget_period
    from ..events import BUDGETS, CAPACITIES, CLOSINGS, LEDGER, PRICES, TENANTS

    closings = store.settings(CLOSINGS)
    budgets = store.settings(BUDGETS)
    spans = [(each.from_ns, each.to_ns) for each in (*periods, *closings, *map(budget_period, budgets))]
    start_ns = min(start for start, _ in spans) if periods else None
    end_ns = max(end for _, end in spans) if periods else None
    runs = store.runs()
    if policy == "roofline":
        ledger = store.read(LEDGER, start_ns=start_ns, end_ns=end_ns)
    else:
        ledger = _ledger_under(store, policy, [run for run in runs if _within(run, start_ns, end_ns)])
    return Books(
        ledger,
        tuple(runs),
        rates=tuple(store.rates()),
        capacities=tuple(store.settings(CAPACITIES)),
        tenants=tuple(store.settings(TENANTS)),
        prices=tuple(store.settings(PRICES)),
        budgets=tuple(budgets),
        closings=tuple(closings),
    )


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
