"""A source on a thread of its own: looked at again and again, backing off while it fails, stopping nobody else."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...errors import FareboxError
from ...events import SOURCE_STATES, SourceState
from ..backoff import Backoff
from ..standing import StandingLog
from .source import Look, Source

if TYPE_CHECKING:
    from ...storage.store import Store

Tell = Callable[[str], None]


class SourceThread:
    """Runs one source until told to stop, and keeps how it stands in the store; `tell` gets every change in words."""

    def __init__(self, source: Source, store: Store, tell: Tell) -> None:
        self.source = source
        self._store = store
        self._tell = tell
        self._stop = threading.Event()
        self._backoff = Backoff()
        self._standing = StandingLog(source.name, source.kind)
        self._said: tuple[str, str | None] | None = None
        self._thread = threading.Thread(target=self._run, name=f"farebox {source.name}", daemon=True)

    def start(self) -> None:
        """Look for the first time, and then again and again."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the source to end; `join` waits for it."""
        self._stop.set()

    def join(self, timeout_s: float) -> bool:
        """Whether the source ended within so many seconds."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    @property
    def is_alive(self) -> bool:
        """Whether the source is looked at."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._stop.wait(self.turn())
        try:
            self.source.close()
        except (FareboxError, OSError) as error:
            self._tell(f"{self.source.name}: {error}")

    def turn(self) -> float:
        """Look once; returns after how many seconds to look again."""
        now_ns = time.monotonic_ns()
        try:
            look = self.source.look()
        except Exception as error:  # whatever is wrong with one source, the others go on
            look = Look("down", _words(error))
            self._backoff.failed(now_ns)
            wait_s = self._backoff.wait_s(now_ns)
        else:
            self._backoff.worked()
            wait_s = self.source.period_s if look.again_s is None else look.again_s
        self._stand(look)
        return wait_s

    def _stand(self, look: Look) -> None:
        """Keep how the source stands; a store that cannot be written now gets the next state."""
        if (look.state, look.why) != self._said:
            self._said = (look.state, look.why)
            self._tell(": ".join(filter(None, (self.source.name, *self._said))))
        state = None if look.is_told else self._standing.see(time.time_ns(), look.state, look.why)
        if state is not None:
            self._keep(state)

    def _keep(self, state: SourceState) -> None:
        try:
            self._store.put(SOURCE_STATES, state)
        except FareboxError as error:
            self._tell(f"{self.source.name}: {error}")


def _words(error: Exception) -> str:
    """What went wrong, in words for the person who reads states; a fault of Farebox's own with its place."""
    if isinstance(error, FareboxError | OSError):
        return str(error)
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({at.name}, line {at.lineno})"
