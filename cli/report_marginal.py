"""`farebox report --marginal`: what would go away without each tenant, beside the bill."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from ..costing.report import Report
    from ..events import Closing
    from ..storage.store import Store

FORMATS = ("table", "csv", "json", "parquet")


def check_format(form: str) -> None:
    """Raise InputError for a format that has no place for a signal beside the bill."""
    if form not in FORMATS:
        raise InputError(f"--marginal is a signal beside the bill, which {form} has no place for: {', '.join(FORMATS)}")


def with_marginal(store: Store, bill: Report, frozen: Closing | None) -> Report:
    """The bill with what would go away beside its lines; `frozen` is the closing whose lines it shows, if any."""
    from ..collector.books import load_books
    from ..collector.marginal_books import load_marginals
    from ..costing.closing_cells import thaw
    from ..costing.marginal_view import check_groups, marginal_view
    from ..costing.teams import Register

    check_groups(bill.by)
    hourly = "hour" in bill.by
    books = load_books(store, bill.period, hourly=hourly)
    settings = books if frozen is None else thaw(frozen)
    marginals = load_marginals(store, books, bill.period, hourly=hourly)
    register = Register(settings.tenants, settings.renames)
    view = marginal_view(bill, books.ledger, marginals, register, is_closed=frozen is not None)
    return replace(bill, marginal=view)
