"""`farebox advise`: what would save money, from recorded traffic."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import json_option, store_argument, tz_option
from .output import put, show
from .planning_options import from_time_option, slo_option, to_time_option, window_of
from .progress import Progress

if TYPE_CHECKING:
    from ..planning.advise import Advised
    from ..storage.store import Store

EPILOG = """\b
Examples
  farebox advise STORE
  farebox advise STORE --slo ttft=2s --slo voice:ttft=300ms,tpot=50ms
  farebox advise STORE --from 2026-10-01 --to 2026-11-01 --json
"""


@click.command(epilog=EPILOG, short_help="Say what would save money, and what it does to whom.")
@store_argument
@from_time_option
@to_time_option
@tz_option
@slo_option
@json_option
def advise(store: Path, start: str | None, end: str | None, tz: str, slos: tuple[str, ...], as_json: bool) -> None:
    """Try changes on the recorded traffic and rank them by what they save in a month of 730 hours.

    Nothing is proposed that breaks a promise (--slo). Without one, nobody's p99 may more than double, unless it stays
    below 1 s to the first token and 100 ms between tokens. The advice is kept in the store, for screens.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from ..planning.advice_text import advice_json, render_advice
    from ..planning.advise import advise as find_advice
    from ..planning.slo import Slo
    from ..planning.traffic import read_recorded
    from ..storage.store import open_store

    promises = [Slo.parse(text) for text in slos]
    with open_store(store) as opened:
        recorded = read_recorded(opened, window_of(opened, start, end, tz))
        named = [text for flag, value in (("--from", start), ("--to", end)) if value for text in (flag, value)]
        named += ["--tz", tz] if named and tz != "UTC" else []
        with Progress(100, "trying") as progress:
            found = find_advice(
                opened,
                recorded,
                promises,
                named,
                at_ns=time.time_ns(),
                on_done=lambda done, whole: progress.at(100 * done // whole),
            )
        if not found.missing:
            _keep(opened, found)
    if as_json:
        put(advice_json(found), None)
    else:
        show(lambda console: render_advice(found, console))
    if found.missing:
        raise click.exceptions.Exit(130)


def _keep(store: Store, found: Advised) -> None:
    """Put the advice into the store in place of what was there."""
    from ..events import ADVICE

    with store.changing() as settings:
        for old in settings.all(ADVICE):
            settings.remove(ADVICE, (old.rank,))
        for row in found.advice:
            settings.put(ADVICE, row)
