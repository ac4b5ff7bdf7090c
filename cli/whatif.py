"""`farebox whatif`: recorded traffic, as it was and under a change."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import click

from ..errors import InputError
from .options import output_option, store_argument, tz_option
from .output import put_as
from .planning_options import from_time_option, slo_option, to_time_option, window_of
from .progress import Progress
from .whatif_sweep import run_sweep

EPILOG = """\b
Examples
  farebox whatif STORE --set max_num_seqs=64
  farebox whatif STORE --set gpu=h200,price=5.20 --set weights=fp8
  farebox whatif STORE --set mode=continuous --slo chat:ttft=500ms
  farebox whatif STORE --route tenant=voice:tier=standard --route '*:max_tokens=512'
  farebox whatif STORE --route 'prompt_tokens<500:endpoint=small' --endpoint small:gpu=l40s,model=llama-3-8b,price=0.99
  farebox whatif STORE --set replicas=4,min_replicas=1 --set hours=07:00-20:00
  farebox whatif STORE --fleet fleet.toml --format html -o fleet.html
  farebox whatif STORE --scenario autumn.toml          (all of this in a file: docs/planning.md)
  farebox whatif STORE --sweep max_num_seqs=8,16,32,64,128,256
"""


@click.command(epilog=EPILOG, short_help="Show what a change would do to the bill, and to whom.")
@store_argument
@from_time_option
@to_time_option
@tz_option
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Change the recorded engines.")
@click.option("--route", "routes", multiple=True, metavar="CONDITION:ACTION", help="Change or redirect requests.")
@click.option("--endpoint", "endpoints", multiple=True, metavar="NAME:KEY=VALUE,…", help="Add an endpoint for routes.")
@click.option("--fleet", type=click.Path(path_type=Path), help="A fleet file in place of the recorded engines.")
@click.option("--scenario", type=click.Path(path_type=Path), help="TOML file with all of this.")
@click.option("--sweep", metavar="KEY=V1,V2,…", help="Try several values of a setting: cost against p99 TTFT.")
@slo_option
@click.option("--format", "form", type=click.Choice(["table", "json", "html"]), default="table", show_default=True)
@output_option
def whatif(
    store: Path,
    start: str | None,
    end: str | None,
    tz: str,
    settings: tuple[str, ...],
    routes: tuple[str, ...],
    endpoints: tuple[str, ...],
    fleet: Path | None,
    scenario: Path | None,
    sweep: str | None,
    slos: tuple[str, ...],
    form: str,
    output: Path | None,
) -> None:
    """Replay recorded traffic through the embedded engine, first as it was, then changed; nothing is recorded.

    The first line is the baseline's own error: the replay as it was, against what was recorded.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from ..planning.comparison import compare
    from ..planning.formats import to_json
    from ..planning.html import to_html
    from ..planning.scenario import parse_scenario
    from ..planning.table import render
    from ..planning.traffic import read_recorded
    from ..storage.store import open_store

    wanted = parse_scenario(settings, routes, endpoints, slos, scenario, fleet)
    with open_store(store) as opened:
        recorded = read_recorded(opened, window_of(opened, start, end, tz))
        if sweep is not None:
            run_sweep(recorded, wanted, sweep, form, output)
            return
        if wanted.is_empty:
            raise InputError("nothing is changed: say what, with --set, --route, --fleet or --scenario (see --help)")
        with Progress(2 * len(recorded.arrivals)) as progress:
            comparison = compare(opened, recorded, wanted, _ticks(progress, len(recorded.arrivals)))
        warnings = opened.warnings
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)
    put_as(form, comparison, {"json": to_json, "html": to_html}, render, output)
    if comparison.problems():
        raise click.exceptions.Exit(1)


def _ticks(progress: Progress, requests: int) -> Callable[[str], Callable[[int], None]]:
    """Progress over both replays; runs are told one by one, so the bar moves as far as the longest of them."""
    passes = iter((0, requests))

    def on_tick(_: str) -> Callable[[int], None]:
        before = next(passes)
        return lambda told: progress.at(max(progress.done, before + min(told, requests)))

    return on_tick
