"""A shield against interruption between two consistent states."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

_Handler = Callable[[int, FrameType | None], object]


class Shield:
    """While it is entered (`with shield:`), Ctrl-C and termination wait until it is left."""

    def __init__(self) -> None:
        self._entered = False
        self._held: Callable[[], object] | None = None

    def __enter__(self) -> None:
        self._entered = True

    def __exit__(self, *exc: object) -> None:
        self._entered = False
        if self._held is not None:
            held, self._held = self._held, None
            held()

    def around(self, handler: _Handler) -> _Handler:
        """The signal handler that holds `handler` back while the shield is entered."""

        def handle(signum: int, frame: FrameType | None) -> None:
            if self._entered:
                self._held = lambda: handler(signum, frame)
            else:
                handler(signum, frame)

        return handle


@contextmanager
def shielded_signals() -> Generator[Shield]:
    """Put a shield before the Python handlers of SIGINT and SIGTERM. Outside the main thread it has nothing to do."""
    shield = Shield()
    previous: dict[signal.Signals, _Handler] = {}
    if threading.current_thread() is threading.main_thread():
        for signum in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(signum)
            if callable(handler):
                previous[signum] = handler
                signal.signal(signum, shield.around(handler))
    try:
        yield shield
    finally:
        for signum, handler in previous.items():
            signal.signal(signum, handler)
