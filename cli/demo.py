"""`farebox demo`: the dashboard on the embedded engine, with made-up tenants."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from .beside import beside
from .screens import Shown, screen_options, show_screens
from .terminal import is_interactive
from .top import print_snapshot

LEAD_SECONDS = 120
SUMMARY_SECONDS = 600

EPILOG = """\b
Examples
  farebox demo                     watch it; q quits, ? explains every figure
  farebox demo --store my-demo     keep what was recorded: farebox report my-demo
  farebox demo | cat               a plain summary, for a pipe or a log
"""


@click.command(epilog=EPILOG, short_help="Watch four made-up tenants ride one GPU.")
@click.option(
    "--store", type=click.Path(path_type=Path), help="Folder to record into.  [default: one that is removed at the end]"
)
@screen_options
def demo(store: Path | None, **options: Any) -> None:
    """Watch four made-up tenants ride one H100 (Llama-3-8B, 64 seats, 4.29 $/h as an example).

    A support chat, a code completion, a nightly summariser and a voice agent in fast mode. No GPU is needed: the
    embedded engine predicts how long every step takes. Without a terminal it prints a plain summary.
    """
    shown = Shown(**options)
    with _place(store) as place:
        if is_interactive():
            _watch(place, shown)
        else:
            _print(place, ascii_only=shown.ascii_only)


@contextmanager
def _place(store: Path | None) -> Generator[Path]:
    if store is not None:
        yield store
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="farebox-demo-") as folder:
        yield Path(folder) / "store"


def _watch(place: Path, shown: Shown) -> None:
    with beside(_record, place, LEAD_SECONDS, paced=True):
        show_screens(place, shown)


def _print(place: Path, *, ascii_only: bool) -> None:
    _record(place, SUMMARY_SECONDS, paced=False)
    print_snapshot(place, ascii_only=ascii_only)


def _record(place: Path, lead_s: int, *, paced: bool) -> None:
    from ..collector.demo import record_demo

    record_demo(place, lead_s, paced=paced)
