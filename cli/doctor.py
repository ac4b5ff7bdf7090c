"""`farebox doctor`: what is wrong here, and what to do."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..collector.checks.check import Check
from .collect import load_config
from .options import json_option

if TYPE_CHECKING:
    from ..collector.config.collecting import CollectConfig

EPILOG = """\b
Examples
  farebox doctor                   NVML and the clock of this host
  farebox doctor STORE             the store as well: readable, its disk, its sources, its prices
  farebox doctor -c farebox.toml   every source of the file, and its store
  farebox doctor STORE --json      the same for programs

\b
Exit codes
  0    nothing is wrong; notes are worth knowing
  1    something is
"""
SIGNS = {"ok": "ok", "note": "note", "bad": "BAD"}


@click.command(epilog=EPILOG, short_help="Find what is wrong: GPUs, clock, store, prices.")
@click.argument("store", metavar="[STORE]", required=False, type=click.Path(path_type=Path))
@click.option(
    "-c",
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file of `farebox collect`: look at its sources too.",
)
@json_option
def doctor(store: Path | None, config: Path | None, as_json: bool) -> None:
    """Check NVML and the clock and, with a store, whether it can be read, who records, its disk, sources and prices.

    Spools are looked at as well: whether their writers live, and whether somebody takes them over. Changes nothing;
    works beside a recording process.
    """
    checks = examine(store, config)
    if as_json:
        click.echo(json.dumps([check._asdict() for check in checks], indent=2, ensure_ascii=False))
    else:
        for check in checks:
            click.echo(f"{SIGNS[check.level]:4}  {check.name}: {check.says}")
            if check.advice:
                click.echo(f"      → {check.advice}")
    if any(check.level == "bad" for check in checks):
        raise click.exceptions.Exit(1)


def examine(store: Path | None, config: Path | None = None) -> list[Check]:
    """All checks, in the order in which one would look; the store is that of the configuration unless given."""
    from ..collector.checks.clock import check_clock
    from ..collector.checks.gpus import check_gpus
    from ..collector.host import host_memory
    from ..collector.nvml.watch import GpuWatch

    now_ns = time.time_ns()
    watch = GpuWatch(host_memory=host_memory)
    checks = check_gpus(watch, now_ns)
    watch.close()
    collected = None if config is None else load_config(config)
    if collected is not None:
        from ..collector.checks.sources import check_config

        store = store or collected.store
        checks += check_config(collected)
    if store is None:
        return checks + check_clock(now_ns, None)
    found, newest_ns = _examine_store(store, collected)
    return checks + check_clock(now_ns, newest_ns) + found


def _examine_store(path: Path, config: CollectConfig | None) -> tuple[list[Check], int | None]:
    """The checks of a store and of folders of spools, and the newest instant that a run on a real clock has in it."""
    from ..collector.checks.money import check_capacity, check_rates, check_sources
    from ..collector.checks.place import check_archive, check_place, open_readable
    from ..collector.checks.sources import check_names, spool_roots
    from ..collector.checks.spools import check_aside, check_spools
    from ..storage.layout import Layout

    if config is not None and not Layout(path).exists:
        return [Check("store", "note", f"there is none at {path} yet: `farebox collect` makes it")], None
    store, readable = open_readable(path)
    if store is None:
        return [readable], None
    with store:
        real = [run.wall_end_ns for run in store.runs() if run.clock == "real"]
        found = [readable, *check_place(path), check_archive(store), *check_sources(store)]
        for root in (Layout(path).spools, *spool_roots(config)):
            found += check_spools(store, root)
        found += [*check_aside(path), *([] if config is None else check_names(config, store))]
        found += [check_rates(store), check_capacity(store)]
    return found, max(real, default=None)
