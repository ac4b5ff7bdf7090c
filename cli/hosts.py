"""`farebox hosts`: the GPUs that finance pays for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError
from . import entering
from .listing import print_records, print_table, when
from .names import gpu_type as gpu_name
from .options import (
    from_option,
    json_option,
    note_option,
    replace_option,
    store_argument,
    to_option,
    tz_option,
)

if TYPE_CHECKING:
    from ..events import Capacity
    from ..storage.settings import Settings

EPILOG = """\b
Examples
  farebox hosts add STORE node-7 --gpus 8 --type h100 --from 2026-01-01 --note "lease 4711"
  farebox hosts end STORE node-7 --at 2026-07-01
  farebox hosts list STORE
"""
_MOST_SHOWN = 8


@click.group(epilog=EPILOG, short_help="Declare the GPUs that you pay for.")
def hosts() -> None:
    """Declare the GPUs that you pay for, whether or not an engine runs on them.

    A report's total is then declared GPU-time × rate, and declared time without a run is a line of its own. Without a
    declaration the runs' wall clocks stand in for it.
    """


@hosts.command(epilog=EPILOG)
@store_argument
@click.argument("host")
@click.option("--gpus", type=click.IntRange(1, 100_000), required=True, help="How many GPUs.")
@click.option("--type", "gpu_type", required=True, help="Their type.")
@from_option
@to_option
@tz_option
@note_option
@replace_option
def add(
    store: Path,
    host: str,
    gpus: int,
    gpu_type: str,
    start: str | None,
    end: str | None,
    tz: str,
    note: str,
    replace: bool,
) -> None:
    """Declare GPUs of one type on a host. It ends the open declaration before."""
    from ..events import CAPACITIES, Capacity

    kind = gpu_name(gpu_type)

    def made(settings: Settings) -> Capacity:
        from_ns = entering.start_ns(settings, CAPACITIES, (host, kind), start, tz)
        return Capacity(host, kind, gpus, from_ns, entering.end_ns(end, tz), note)

    capacity = entering.enter(store, CAPACITIES, made, replace=replace)
    click.echo(f"{host} has {gpus}×{kind} since {when(capacity.from_ns)}")
    _warn_without_run(store, host, kind)


def _warn_without_run(store: Path, host: str, kind: str) -> None:
    """Say when no run is on what was declared: perhaps its name is spelled otherwise."""
    from ..storage.store import open_store

    with open_store(store) as opened:
        places = sorted({(run.host, run.gpu_type) for run in opened.runs()})
    if (host, kind) in places:
        return
    known = ", ".join(f"{name} ({gpu})" for name, gpu in places[:_MOST_SHOWN]) or "no host yet"
    more = f" and {len(places) - _MOST_SHOWN} more" if len(places) > _MOST_SHOWN else ""
    click.echo(
        f"note: no run is on {host} ({kind}), so all of its time is unobserved; runs are on {known}{more}", err=True
    )


@hosts.command(epilog=EPILOG)
@store_argument
@click.argument("host")
@click.option("--type", "gpu_type", help="Their type, where a host has several.")
@click.option("--at", required=True, metavar="TIME", help="The first instant that is no longer paid.")
@tz_option
def end(store: Path, host: str, gpu_type: str | None, at: str, tz: str) -> None:
    """End a declaration: from then on the GPUs are no longer paid for."""
    from ..events import CAPACITIES
    from ..storage.store import open_store

    with open_store(store) as opened:
        kinds = {c.gpu_type for c in opened.settings(CAPACITIES) if c.host == host}
    kind = gpu_name(gpu_type) if gpu_type else next(iter(kinds), "")
    if not gpu_type and len(kinds) > 1:
        raise InputError(f"{host} has GPUs of several types ({', '.join(sorted(kinds))}): say which with --type")
    entering.end(store, CAPACITIES, (host, kind), at, tz)


@hosts.command("list", epilog=EPILOG)
@store_argument
@json_option
def list_hosts(store: Path, as_json: bool) -> None:
    """List what is declared, ended declarations too."""
    from ..events import CAPACITIES
    from ..storage.store import open_store

    with open_store(store) as opened:
        found = opened.settings(CAPACITIES)
    if as_json:
        print_records(found)
        return
    rows = [(c.host, f"{c.gpus}×{c.gpu_type}", when(c.from_ns), when(c.to_ns, "open"), c.note) for c in found]
    print_table(("host", "GPUs", "from", "to", "note"), rows, "nothing declared: the runs' wall clocks stand in for it")
