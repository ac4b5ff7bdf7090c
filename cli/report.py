"""`farebox report`: who pays what."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .billing import Method, method_of, method_options, period_of
from .clock import instant
from .options import store_argument, tz_option
from .output import put, show
from .report_close import close

if TYPE_CHECKING:
    from ..costing.periods import Period
    from ..costing.report import Report
    from ..storage.store import Store

EPILOG = """\b
Examples
  farebox report STORE                          (all that is recorded, with the rates kept in the store)
  farebox report STORE --rate 4.29
  farebox report STORE --period 2026-10 --tz America/New_York --by team,day
  farebox report STORE --from 2026-10-01 --to 2026-10-15 --idle weighted --policy tokens
  farebox report STORE --period 2026-10 --format html -o october.html
  farebox report STORE --by tenant,tier --format csv > october.csv
  farebox report close STORE --period 2026-10   (freezes the bill; see farebox report close --help)
"""
TEXTS = ("table", "csv", "json", "html", "focus")


class Reports(click.Group):
    """`farebox report STORE` is the report itself; `farebox report close STORE` is a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the rest of the command line as a command's or, without one, as the report's."""
        if args and args[0] in self.commands:
            return super().make_context(info_name, args, parent, **extra)
        return write_report.make_context(info_name, args, parent, **extra)


@click.group(cls=Reports, epilog=EPILOG, short_help="Write the bill; the total is the invoice.")
def report() -> None:
    """Write the bill, or close it."""


report.add_command(close)


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
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write instead of standard output.")
def write_report(
    store: Path,
    period: str | None,
    start: str | None,
    end: str | None,
    tz: str,
    form: str,
    output: Path | None,
    **options: Any,
) -> None:
    """Write the bill: tenants, idle, overhead; the total is the invoice, to the micro-dollar.

    Without a rate it prints GPU-hours, and says so. A closed period prints what was closed, to the byte, unless you ask
    for another method or grouping.
    """
    from ..events import CAPACITIES
    from ..storage.store import open_store

    if form == "parquet" and output is None:
        raise InputError("--format parquet writes a file: name it with -o FILE")
    with open_store(store) as opened:
        if not opened.runs() and not opened.settings(CAPACITIES):
            raise InputError(f"{store} holds no run yet, and no capacity is declared: there is nothing to bill")
        asked = _asked(opened, period, start, end, tz)
        frozen = None
        if asked is not None and not any(value is not None for value in options.values()):
            frozen = _frozen(opened, asked, form)
        if frozen is not None:
            put(frozen, output)
            return
        bill = _build(opened, asked, tz, method_of(options))
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


def _frozen(store: Store, period: Period, form: str) -> str | None:
    """The bill of a closed period as it was closed; None when it is open. `InputError` if not kept in that form."""
    from ..costing.closing import closed_text, find_closing
    from ..events import CLOSINGS

    closing = find_closing(store.settings(CLOSINGS), period)
    if closing is None:
        return None
    if form != "table" and form != "csv" and form != "json":
        raise InputError(
            f"{closing.period} is closed, and its bill was kept as table, csv and json: --format {form} would be made"
            " from what the store holds now. If that is what you want, say how, as with --policy roofline"
        )
    return closed_text(closing, form)


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
