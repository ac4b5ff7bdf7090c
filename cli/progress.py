"""A progress bar on standard error, where somebody watches."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

import click


class Progress:
    """Shows how much of `total`, of what `label` says, is done; silent when standard error is no terminal."""

    def __init__(self, total: int, label: str = "riding") -> None:
        self._bar = click.progressbar(
            length=total, label=label, file=sys.stderr, show_pos=True, hidden=not sys.stderr.isatty()
        )
        self._done = 0

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    @property
    def done(self) -> int:
        """Requests done so far."""
        return self._done

    def at(self, done: int) -> None:
        """Move the bar to `done` requests."""
        self._bar.update(done - self._done)
        self._done = done
