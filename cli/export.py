"""`farebox export`: rows of one table as a file."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import InputError
from .clock import instant
from .options import output_option, store_argument, tz_option
from .reading import FORMATS, check_file, reading, write_rows

_BY_TENANT = ("steps", "shares", "requests", "ledger")
_BY_ENGINE = ("runs", "steps", "shares", "requests", "ledger", "intervals")
_TABLES = ("runs", "steps", "shares", "requests", "ledger", "intervals", "gpu", "host")
EPILOG = """\b
Examples
  farebox export STORE ledger --from 2026-11-01 --to 2026-12-01 -o november.parquet
  farebox export STORE requests --tenant voice --format csv > voice.csv
  farebox export STORE gpu --from 2026-11-05T09:00Z --format json -o gpus.json
"""


@click.command(epilog=EPILOG, short_help="Write a table's rows to a file.")
@store_argument
@click.argument("table", type=click.Choice(_TABLES))
@click.option("--from", "start", metavar="TIME", help="Since when: 2026-01-01 or 2026-01-01T12:00Z.")
@click.option("--to", "end", metavar="TIME", help="Before when.")
@click.option("--engine", help="Only this engine's rows.")
@click.option("--tenant", help="Only this tenant's rows; for steps those in which it rode.")
@tz_option
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="Format of the file.  [default: the ending of its name, else csv]",
)
@output_option
def export(
    store: Path,
    table: str,
    start: str | None,
    end: str | None,
    engine: str | None,
    tenant: str | None,
    tz: str,
    form: str | None,
    output: Path | None,
) -> None:
    """Write the rows of a table, recent and archived ones as one, in bounded memory. The file is whole or not there.

    Lines of the ledger with the same key may be several; they add up.
    """
    form = form or (output.suffix.removeprefix(".") if output is not None else "csv")
    if form not in FORMATS:
        raise InputError(f"{output} does not end in .csv, .json or .parquet: say which with --format")
    check_file(form, output)
    with reading(store) as opened:
        limits = _limits(table, engine, tenant)
        bounds = (None if at is None else instant(at, tz) for at in (start, end))
        answer = getattr(opened, table)(*bounds, **limits).reader()
        write_rows(answer, form, output)


def _limits(table: str, engine: str | None, tenant: str | None) -> dict[str, str]:
    if engine is not None and table not in _BY_ENGINE:
        raise InputError(f"{table} holds no engines: leave --engine out")
    if tenant is not None and table not in _BY_TENANT:
        raise InputError(f"{table} holds no tenants: leave --tenant out")
    return {name: text for name, text in (("engine", engine), ("tenant", tenant)) if text is not None}
