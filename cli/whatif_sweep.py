"""`farebox whatif --sweep`: a curve of one setting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import put_as
from .progress import Progress

if TYPE_CHECKING:
    from ..planning.scenario import Scenario
    from ..planning.traffic import Recorded


def run_sweep(recorded: Recorded, scenario: Scenario, text: str, form: str, output: Path | None) -> None:
    """Sweep and write the curve; after an interruption what is done, and exit code 130."""
    from ..planning.sweep import parse_sweep, sweep
    from ..planning.sweep_text import render_sweep, sweep_html, sweep_json

    key, values = parse_sweep(text)
    with Progress(len(values) + 1, "replays") as progress:
        found = sweep(recorded, scenario, key, values, progress.at)
    put_as(form, found, {"json": sweep_json, "html": sweep_html}, render_sweep, output)
    if found.missing or found.baseline is None:
        raise click.exceptions.Exit(130)
