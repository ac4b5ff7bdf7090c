"""`farebox advise`: what would save money, from recorded traffic."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import json_option, output_option, store_argument, tz_option
from .output import put_as
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
  farebox advise STORE --format html -o advice.html
"""


@click.command(epilog=EPILOG, short_help="Say what would save money, and what it does to whom.")
@store_argument
@from_time_option
@to_time_option
@tz_option
@slo_option
@click.option("--format", "form", type=click.Choice(["table", "json", "html"]), default="table", show_default=True)
@json_option
@output_option
def advise(
    store: Path,
    start: str | None,
    end: str | None,
    tz: str,
    slos: tuple[str, ...],
    form: str,
    as_json: bool,
    output: Path | None,
) -> None:
    """Try changes on the recorded traffic and rank them by what they save in a month of 730 hours.

    Nothing is proposed that breaks a promise (--slo). Without one, nobody's p99 may more than double, unless it stays
    below 1 s to the first token and 100 ms between tokens. The advice is kept in the store, for screens.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from ..planning.advice_html import advice_html
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
    texts = {"json": advice_json, "html": advice_html}
    put_as("json" if as_json else form, found, texts, render_advice, output)
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
