"""`farebox top`: the live screen on a store."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from .options import store_argument
from .terminal import is_interactive

EPILOG = """\b
Examples
  farebox top farebox-runs/3f2a…     watch a store, while it is written or afterwards
  farebox top STORE --once           one plain snapshot, for scripts and logs
  farebox top STORE --once --json    the same for programs
"""


@click.command(epilog=EPILOG, short_help="Watch a store: who rides, what is idle, what it costs.")
@store_argument
@click.option("--once", is_flag=True, help="Print one plain snapshot and leave.")
@click.option("--json", "as_json", is_flag=True, help="With --once: print it as JSON.")
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only.")
def top(store: Path, once: bool, as_json: bool, ascii_only: bool) -> None:
    """Watch who rides the GPU, what is idle and what it costs.

    Reads only: it can be started, stopped and started twice while another process records. Without a terminal it prints
    one plain snapshot.
    """
    if once or as_json or not is_interactive():
        print_snapshot(store, as_json=as_json, ascii_only=ascii_only)
        return
    from ..tui.app import run_top

    sys.exit(run_top(store, ascii_only=ascii_only, peaks=gpu_peaks))


def print_snapshot(store: Path, *, as_json: bool = False, ascii_only: bool = False) -> None:
    """Print what the live screen would show now, as plain text or JSON."""
    from ..storage.live import LiveReader
    from ..tui.feed import Feed
    from ..tui.glyphs import glyphs_for
    from ..tui.plain import plain_snapshot, to_json

    reader = LiveReader(store)
    try:
        snapshot = Feed(reader, peaks=gpu_peaks).poll()
    finally:
        reader.close()
    if as_json:
        click.echo(to_json(snapshot))
    else:
        click.echo(plain_snapshot(snapshot, glyphs_for(sys.stdout.encoding, ascii_only)), nl=False)


def gpu_peaks(name: str) -> tuple[int, int] | None:
    """Datasheet FLOP/s and bytes/s of a GPU type; None for one that is not in the catalogue."""
    from ..roofline import SpecError, gpu

    try:
        spec = gpu(name)
    except SpecError:
        return None
    return int(spec.bf16_flops), int(spec.bandwidth)
