"""`farebox query`: SQL over a store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError
from .clock import instant
from .options import output_option, tz_option
from .output import show
from .reading import check_file, reading, write_rows

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_ROWS = 200
"""Rows of a table for people; files get them all."""
WIDE = 10_000
"""Columns of a table in a pipe: nothing is cut."""
EPILOG = """\b
Examples
  farebox query "SELECT tenant_id, sum(gpu_ns) / 3.6e12 AS gpu_hours FROM ledger GROUP BY 1" --store STORE
  farebox query "SELECT date, avg(running) FROM steps GROUP BY 1 ORDER BY 1" --store STORE --from 2026-11-01
  farebox query "SELECT * FROM requests WHERE finish_reason = 'abort'" --store STORE --format csv > aborts.csv
  farebox query "DESCRIBE shares" --store STORE
  farebox query "SELECT * FROM gpu WHERE at_ns >= epoch_ns(TIMESTAMPTZ '2026-11-01 09:00+01')" --store STORE
"""


@click.command(epilog=EPILOG, short_help="Ask a store in SQL.")
@click.argument("sql", metavar="SELECT")
@click.option("--store", required=True, type=click.Path(path_type=Path), help="The store to ask.")
@click.option("--from", "start", metavar="TIME", help="Only rows since then: 2026-01-01 or 2026-01-01T12:00Z.")
@click.option("--to", "end", metavar="TIME", help="Only rows before then.")
@click.option("--engine", help="Only rows of this engine.")
@tz_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "csv", "json", "parquet"]),
    default="table",
    show_default=True,
    help=f"How to print it; a table shows the first {SHOWN_ROWS} rows.",
)
@output_option
def query(
    sql: str,
    store: Path,
    start: str | None,
    end: str | None,
    engine: str | None,
    tz: str,
    form: str,
    output: Path | None,
) -> None:
    """Answer a SELECT (DuckDB's SQL) over runs, steps, shares, requests, ledger, intervals, gpu, host and the settings.

    Recent and archived rows are one table each, with a column `date` for the UTC date. Conditions on date, time and
    engine skip files. Nothing can be changed, and no other file be read. docs/data.md says what the columns mean.
    """
    check_file(form, output)
    if form == "table" and output is not None:
        raise InputError("a table is for people: choose --format csv, json or parquet for -o FILE")
    with reading(store) as opened:
        bounds = (None if at is None else instant(at, tz) for at in (start, end))
        answer = opened.query(sql, *bounds, engine=engine).reader()
        if form == "table":
            _show(answer)
            return
        write_rows(answer, form, output)


def _show(answer: pa.RecordBatchReader) -> None:
    """Print the first rows as a table, and say so when there are more."""
    import pyarrow as pa
    from rich.table import Table
    from rich.text import Text

    rows, kinds = _rows(answer), answer.schema.types
    shown = list(islice(rows, SHOWN_ROWS))
    table = Table(box=None, pad_edge=False, header_style="dim")
    for field, kind in zip(answer.schema.names, kinds, strict=True):
        is_number = pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind)
        table.add_column(field, justify="right" if is_number else "left", no_wrap=True)
    for row in shown:
        table.add_row(*(Text(cell) for cell in row))
    show(lambda console: console.print(table), width=WIDE)
    if next(rows, None) is not None:
        click.echo(f"the first {SHOWN_ROWS} rows: --format csv prints them all", err=True)


def _rows(answer: pa.RecordBatchReader) -> Iterator[list[str]]:
    for batch in answer:
        columns: list[list[Any]] = [batch.column(i).to_pylist() for i in range(batch.num_columns)]
        for row in zip(*columns, strict=True):
            yield ["" if value is None else str(value) for value in row]
