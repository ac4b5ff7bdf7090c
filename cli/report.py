"""`farebox report`: who pays what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..errors import InputError
from .billing import Method, groups, method_of, method_options, period_of
from .clock import instant
from .options import output_option, store_argument, tz_option
from .output import put, show
from .reading import check_file
from .report_close import close
from .report_marginal import check_format, with_marginal
from .report_reopen import closings, reopen

if TYPE_CHECKING:
    from ..costing.periods import Period
    from ..costing.report import Report
    from ..events import Closing
    from ..storage.store import Store

EPILOG = """\b
Examples
  farebox report STORE                          (all that is recorded, with the rates kept in the store)
  farebox report STORE --rate 4.29
  farebox report STORE --period 2026-10 --tz America/New_York --by team,day
  farebox report STORE --from 2026-10-01 --to 2026-10-15 --idle weighted --policy tokens
  farebox report STORE --period 2026-10 --format html -o october.html
  farebox report STORE --by tenant,tier --format csv > october.csv
  farebox report STORE --period 2026-10 --marginal      (what would go away without each tenant: a signal, not a bill)
  farebox report close STORE --period 2026-10   (freezes the bill; see farebox report close --help)
  farebox report STORE --period 2026-10 --version 1     (the bill before the period was reopened and closed again)
"""
TEXTS = ("table", "csv", "json", "html", "focus")
CLOSED_TEXTS: tuple[Literal["table", "csv", "json"], ...] = ("table", "csv", "json")
"""What a closed bill is kept as, to the byte; other formats are written from its frozen lines."""


class Reports(click.Group):
    """`farebox report STORE` is the report itself; `farebox report close STORE` a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the rest of the command line as a command's or, without one, as the report's."""
        if args and args[0] in self.commands:
            return super().make_context(info_name, args, parent, **extra)
        return write_report.make_context(info_name, args, parent, **extra)


@click.group(cls=Reports, epilog=EPILOG, short_help="Write the bill; the total is the invoice.")
def report() -> None:
    """Write the bill, close it, or reopen what was closed by mistake."""


for command in (close, reopen, closings):
    report.add_command(command)


@click.command(epilog=EPILOG)
@store_argument
@click.option("--period", metavar="PERIOD", help="A year, month or day: 2026, 2026-10 or 2026-10-05.  [default: all]")
@click.option(
    "--from", "start", metavar="TIME", help="Since when, instead of --period: 2026-10-01 or 2026-10-01T12:00Z."
)
@click.option("--to", "end", metavar="TIME", help="Until when.")
@tz_option
@method_options
@click.option(
    "--format",
    "form",
    type=click.Choice([*TEXTS, "parquet"]),
    default="table",
    show_default=True,
    help="What to write; focus goes to Parquet when FILE ends in .parquet.",
)
@click.option("--marginal", is_flag=True, help="Add what would go away without each tenant: a signal, not a bill.")
@click.option("--version", type=click.IntRange(1), help="A version of a closed bill, of one that was reopened too.")
@output_option
def write_report(
    store: Path,
    period: str | None,
    start: str | None,
    end: str | None,
    tz: str,
    form: str,
    marginal: bool,
    version: int | None,
    output: Path | None,
    **options: Any,
) -> None:
    """Write the bill: tenants, idle, overhead; the total is the invoice, to the micro-dollar.

    Without a rate it prints GPU-hours, and says so. A closed period prints what was closed, to the byte, unless you ask
    for another method; grouped otherwise it prints the same amounts.
    """
    from ..events import CAPACITIES
    from ..storage.store import open_store

    check_file(form, output)
    if marginal:
        check_format(form)
    with open_store(store) as opened:
        if not opened.runs() and not opened.settings(CAPACITIES):
            raise InputError(f"{store} holds no run yet, and no capacity is declared: there is nothing to bill")
        asked = _asked(opened, period, start, end, tz)
        closed = None if asked is None else _closed(opened, asked, version)
        if version is not None and closed is None:
            raise InputError("--version is for closed bills: name a closed period (farebox report closings lists them)")
        if closed is not None and form in CLOSED_TEXTS and _is_asked(closed, options) and not marginal:
            put(_closed_text(closed, form), output)
            return
        frozen = None if closed is None else _frozen(closed, options)
        bill = frozen or _build(opened, asked, tz, method_of(options))
        if marginal:
            bill = with_marginal(opened, bill, None if frozen is None else closed)
        problems = (*opened.warnings, *bill.check())
    for problem in problems:
        click.echo(f"warning: {problem}", err=True)
    _write(bill, form, output)
    if bill.check():
        raise click.exceptions.Exit(1)


def _asked(store: Store, period: str | None, start: str | None, end: str | None, tz: str) -> Period | None:
    """The period that the options name; None for all that is recorded."""
    from ..costing.periods import Period, zone_of

    zone_of(tz)
    if period is not None:
        if start is not None or end is not None:
            raise InputError("either --period, or --from and --to, not both")
        return period_of(period, tz)
    if start is None and end is None:
        return None
    first, last = _recorded(store)
    from_ns = first if start is None else instant(start, tz)
    return Period.between(from_ns, last if end is None else instant(end, tz), tz)


def _recorded(store: Store) -> tuple[int, int]:
    """The whole minutes of all runs; nothing is (0, 0)."""
    from ..events import MINUTE_NS

    runs = store.runs()
    first = min((run.started_ns for run in runs), default=0) // MINUTE_NS
    last = -(-max((run.wall_end_ns for run in runs), default=0) // MINUTE_NS)
    return first * MINUTE_NS, last * MINUTE_NS


def _closed(store: Store, period: Period, version: int | None) -> Closing | None:
    """The closing of exactly this period: the one that stands, or a certain version of it; None when it is open."""
    from ..costing.closing import find_closing
    from ..events import CLOSINGS

    found: list[Closing] = store.settings(CLOSINGS)
    wanted = [each for each in found if (each.stands if version is None else each.version == version)]
    return find_closing(wanted, period)


def _is_asked(closing: Closing, options: dict[str, Any], *, any_group: bool = False) -> bool:
    """Whether the options ask for what was closed, in any grouping or in its own."""
    from ..costing.closing_cells import thaw

    if all(value is None for value in options.values()):
        return True
    by = groups(options["by"]) if options["by"] and not any_group else None
    return thaw(closing).is_asked(by, *(options[name] for name in ("idle", "rate", "currency", "policy")))


def _frozen(closing: Closing, options: dict[str, Any]) -> Report | None:
    """The closed bill from its frozen lines, grouped as asked; None where another method is asked for."""
    from ..costing.closing import verify
    from ..costing.closing_report import can_group, grouped, thaw_report

    verify(closing)
    if _is_asked(closing, options):
        return thaw_report(closing)
    by = groups(options["by"] or "tenant")
    if _is_asked(closing, options, any_group=True) and can_group(closing, by):
        return grouped(closing, by)
    return None


def _closed_text(closing: Closing, form: str) -> str:
    """The closed bill as it was written when it was closed."""
    from ..costing.closing import ClosedForm, closed_text

    forms: dict[str, ClosedForm] = {name: name for name in CLOSED_TEXTS}
    return closed_text(closing, forms[form])


def _build(store: Store, period: Period | None, tz: str, method: Method) -> Report:
    from ..collector.books import load_books
    from ..costing.periods import Period
    from ..costing.report import build_report

    if period is None and tz != "UTC" and store.runs():
        period = Period.between(*_recorded(store), tz)
    periods = [] if period is None else [period]
    books = load_books(store, *periods, policy=method.policy, hourly="hour" in method.by)
    return build_report(books, period, method.by, method.idle, method.rate, method.currency, method.policy)


def _write(bill: Report, form: str, output: Path | None) -> None:
    if form == "table":
        from ..costing.table import render

        show(lambda console: render(bill, console), output)
    elif form == "parquet" or (form == "focus" and output is not None and output.suffix == ".parquet"):
        put(_parquet(bill, form), output)
    else:
        put(_text(bill, form), output)


def _parquet(bill: Report, form: str) -> bytes:
    from ..costing import focus, formats

    return formats.to_parquet(bill) if form == "parquet" else focus.to_focus_parquet(bill)


def _text(bill: Report, form: str) -> str:
    match form:
        case "csv":
            from ..costing.formats import to_csv

            return to_csv(bill)
        case "json":
            from ..costing.formats import to_json

            return to_json(bill)
        case "html":
            from ..costing.html import to_html

            return to_html(bill)
        case _:
            from ..costing.focus import to_focus_csv

            return to_focus_csv(bill)
