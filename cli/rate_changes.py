"""`farebox rates end`, `remove` and `changes`: what is done about a rate that is over or was wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import entering
from .clock import instant
from .listing import plain, print_records, print_table, when
from .options import json_option, reason_option, store_argument, tz_option
from .rate_scope import described, scope_of, scope_options

if TYPE_CHECKING:
    from ..events import Rate

EPILOG = """\b
Examples
  farebox rates end STORE --gpu-type h100 --at 2026-07-01
  farebox rates remove STORE --gpu-type h100 --from 2026-06-01 --reason "a typo: 42.9 for 4.29"
  farebox rates changes STORE
"""


@click.command("end", epilog=EPILOG)
@store_argument
@scope_options
@click.option("--at", required=True, metavar="TIME", help="The first instant at which it no longer holds.")
@tz_option
def end_rate(store: Path, gpu_type: str | None, host: str | None, engine: str | None, at: str, tz: str) -> None:
    """End a rate: from then on a wider one holds, or none. Closed bills stay as they are."""
    from ..events import RATES

    entering.end(store, RATES, scope_of(gpu_type, host, engine), at, tz)


@click.command("remove", epilog=EPILOG)
@store_argument
@scope_options
@click.option(
    "--from", "start", required=True, metavar="TIME", help='Since when it holds, as listed: "beginning", too.'
)
@tz_option
@reason_option
def remove_rate(
    store: Path, gpu_type: str | None, host: str | None, engine: str | None, start: str, tz: str, reason: str
) -> None:
    """Take a wrong rate back, as if it had never been entered: the one that it ended holds on in its place.

    Open bills are priced without it; closed ones stay as they are. The rate is kept among the changes, with the reason.
    """
    from ..events import RATES
    from ..storage import effective
    from ..storage.store import open_store

    about, from_ns = scope_of(gpu_type, host, engine), instant(start, tz)
    with open_store(store) as opened, opened.changing() as settings:
        removed = effective.remove(settings, RATES, about, from_ns, reason)
    gone: Rate = removed.row
    if (before := removed.before) is not None:
        click.echo(f"note: {plain(before.per_gpu_hour)} {before.currency} holds {effective.span(before)}", err=True)
    click.echo(f"{described(gone)}: {plain(gone.per_gpu_hour)} {gone.currency} since {when(from_ns)} is taken back")


@click.command("changes", epilog=EPILOG)
@store_argument
@json_option
def list_changes(store: Path, as_json: bool) -> None:
    """List the rates that were replaced, ended or taken back, and why."""
    from ..events import CHANGES, RATES, Change
    from ..storage.store import open_store

    with open_store(store) as opened:
        found: list[Change] = [change for change in opened.settings(CHANGES) if change.setting == RATES.name]
    if as_json:
        print_records(found)
        return
    rows = [
        (when(c.changed_ns), c.about.replace("gpu_type ", ""), _in_short(c.before), _in_short(c.after), c.reason)
        for c in found
    ]
    print_table(("changed at", "rate for", "before", "after", "why"), rows, "no rate was replaced, ended or taken back")


def _in_short(rate: str | None) -> str:
    """A kept rate in a few words."""
    if rate is None:
        return "taken back"
    row: dict[str, Any] = json.loads(rate)
    return f"{plain(row['per_gpu_hour'])} {row['currency']}, {when(row['from_ns'])} – {when(row['to_ns'], 'open')}"
