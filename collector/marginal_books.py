"""Marginal time from a store: what would go away without each tenant, from the stored steps of a period."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from ..costing.borders import borders
from ..costing.marginal import marginal_lines, roll_marginals
from ..costing.stored_steps import STEP_COLUMNS
from ..events import SHARES, STEPS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ..costing.books import Books
    from ..costing.periods import Period
    from ..events import Run
    from ..storage.store import Store


def load_marginals(store: Store, books: Books, period: Period, *, hourly: bool) -> pa.Table:
    """Marginal time of a period's tenants as `roll_marginals` answers; runs without a step model have none.

    Lines come added up as far as a bill of exactly this period allows, by hours only where `hourly`.
    """
    runs = [
        run
        for run in books.runs
        if run.step_model and run.started_ns < period.to_ns and run.wall_end_ns > period.from_ns
    ]
    lines = chain.from_iterable(_lines(store, run, period.to_ns) for run in runs)
    apart = borders(books, [period], hourly=hourly)
    return roll_marginals(lines, apart, period.from_ns, period.to_ns)


def _lines(store: Store, run: Run, end_ns: int) -> Iterator[pa.RecordBatch]:
    """All steps of a run that began before an instant; earlier than the period too, as one may reach into it."""
    steps = store.scan(STEPS, STEP_COLUMNS, run.started_ns, end_ns, run.engine_id)
    shares = store.scan(SHARES, None, run.started_ns, end_ns, run.engine_id)
    yield from marginal_lines(run, steps, shares)
