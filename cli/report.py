"""`farebox report`: who pays what."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError
from .options import RateType, store_argument

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..costing.report import By, Report
    from ..events import Rate, Run

EPILOG = """\b
Examples
  farebox report STORE                          (with the rate kept in the store)
  farebox report STORE --rate 4.29
  farebox report STORE --by tenant,tier --format csv > october.csv
  farebox report STORE --format parquet -o october.parquet
"""


@click.command(epilog=EPILOG, short_help="Write the bill; the total is the invoice.")
@store_argument
@click.option("--rate", type=RateType(), help="Price of a GPU-hour, instead of the one kept in the store.")
@click.option(
    "--by", default="tenant", show_default=True, help="Columns to group by: tenant,tier,model,engine,host,day."
)
@click.option(
    "--format", "form", type=click.Choice(["table", "csv", "json", "parquet"]), default="table", show_default=True
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File to write instead of standard output.")
def report(store: Path, rate: Decimal | None, by: str, form: str, output: Path | None) -> None:
    """Write the bill: tenants, idle, overhead; the total is the invoice, to the micro-dollar.

    Without a rate in the store or on the command line it prints GPU-hours, and says so.
    """
    from ..costing.report import build_report
    from ..events import LEDGER
    from ..storage.store import open_store

    with open_store(store) as opened:
        runs = opened.runs()
        price = kept_rate(opened.rates(), runs) if rate is None else rate
        bill = build_report(opened.read(LEDGER), runs, price, _groups(by))
        problems = (*opened.warnings, *bill.check())
    for problem in problems:
        click.echo(f"warning: {problem}", err=True)
    _write(bill, form, output)


def kept_rate(rates: Sequence[Rate], runs: Sequence[Run]) -> Decimal | None:
    """The store's price for all `runs`; None if one has none. `InputError` when they have different ones."""
    from ..costing.rating import find_rate

    found = {find_rate(rates, run.gpu_type, run.started_ns) for run in runs}
    prices = {None if rate is None else Decimal(rate.per_gpu_hour) for rate in found}
    if len(prices) > 1 and None not in prices:
        listed = ", ".join(f"{price:f}" for price in sorted(price for price in prices if price is not None))
        raise InputError(f"the store's runs have different rates ({listed}): say which one to use with --rate")
    return prices.pop() if len(prices) == 1 else None


def _groups(by: str) -> tuple[By, ...]:
    from ..costing.report import COLUMNS

    names: dict[str, By] = {name: name for name in COLUMNS}
    wanted = [part.strip() for part in by.split(",")]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise InputError(f"--by {', '.join(unknown)}: no such column; choose from {', '.join(names)}")
    return tuple(names[name] for name in wanted)


def _write(bill: Report, form: str, output: Path | None) -> None:
    from ..costing import formats

    if form == "parquet":
        if output is None:
            raise InputError("--format parquet writes a file: name it with -o FILE")
        formats.to_parquet(bill, output)
        return
    text = {"csv": formats.to_csv, "json": formats.to_json, "table": _table}[form](bill)
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")


def _table(bill: Report) -> str:
    from rich.console import Console

    from ..costing.table import render

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    with console.capture() as capture:
        render(bill, console)
    return capture.get()
