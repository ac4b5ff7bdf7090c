"""What every command that shows the screens is asked, and how they are shown."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from ..tui.navigation import PAGES


class Shown(NamedTuple):
    """How the screens are shown."""

    ascii_only: bool = False
    no_mouse: bool = False
    page: str | None = None
    """The page to open with; None: the one that was open last."""


def screen_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that make a `Shown`."""
    modes = click.Choice([page.mode for page in PAGES])
    options = (
        click.option("--ascii", "ascii_only", is_flag=True, help="Draw with ASCII characters only."),
        click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal, to select and copy text."),
        click.option("--page", type=modes, help="Page to open with.  [default: the one open last]"),
    )
    for option in reversed(options):
        command = option(command)
    return command


def show_screens(store: Path, shown: Shown) -> int:
    """Show the screens on a store until the user leaves; returns the process's exit code."""
    from ..tui.app import Options, run_top
    from .desk import StoreDesk
    from .top import gpu_peaks

    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # Arrow's own would keep what History read once
    options = Options(shown.ascii_only, not shown.no_mouse, shown.page)
    return run_top(store, gpu_peaks, options, StoreDesk(store))
