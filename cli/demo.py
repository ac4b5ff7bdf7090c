"""`farebox demo`: the dashboard on the embedded engine, with made-up tenants."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click

from .terminal import is_interactive

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
@click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only.")
def demo(store: Path | None, ascii_only: bool) -> None:
    """Watch four made-up tenants ride one H100 (Llama-3-8B, 64 seats, 4.29 $/h as an example).

    A support chat, a code completion, a nightly summariser and a voice agent in fast mode. No GPU is needed: the
    embedded engine predicts how long every step takes. Without a terminal it prints a plain summary.
    """
    with _place(store) as place:
        if is_interactive():
            _watch(place, ascii_only)
        else:
            _print(place, ascii_only)


@contextmanager
def _place(store: Path | None) -> Generator[Path]:
    if store is not None:
        yield store
        return
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="farebox-demo-") as folder:
        yield Path(folder) / "store"


def _watch(place: Path, ascii_only: bool) -> None:
    from multiprocessing import get_context

    from ..tui.app import run_top
    from .top import gpu_peaks

    engine = get_context("spawn").Process(target=_record, args=(place, LEAD_SECONDS), kwargs={"paced": True})
    engine.start()
    try:
        run_top(place, ascii_only=ascii_only, peaks=gpu_peaks)
    finally:
        engine.terminate()
        engine.join()


def _print(place: Path, ascii_only: bool) -> None:
    from .top import print_snapshot

    _record(place, SUMMARY_SECONDS, paced=False)
    print_snapshot(place, ascii_only=ascii_only)


def _record(place: Path, lead_s: int, *, paced: bool) -> None:
    from ..collector.demo import record_demo

    record_demo(place, lead_s, paced=paced)
