"""A folder of spools as a source: every writer's events into the store."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import FareboxError
from ...events import SourceStanding
from ...storage.spool.lines import LOCK, segments
from ...storage.spool.reader import spools
from ..collect.source import Look
from .drain import MOST_EVENTS, SpoolDrain, writer_name
from .engines import Engines

if TYPE_CHECKING:
    from ...storage.store import Store

PERIOD_S = 0.5
TROUBLE_S = 600.0
"""How long a fault is shown after it happened."""
_SETTLED_S = 10.0
"""A folder without events and as young as this may not have its writer yet."""


class SpoolSource:
    """Drains all spools under a folder. Faults of one spool leave the others alone."""

    kind = "spool"
    period_s = PERIOD_S

    def __init__(self, store: Store, root: Path, engines: Engines) -> None:
        self.name = f"spool:{root}"
        self.drains: dict[str, SpoolDrain] = {}
        self.faults: dict[str, int] = {"damaged": 0, "dropped": 0, "refused": 0}
        """Lines that were damaged, events that writers lost, and events that could not be recorded, of all spools."""
        self._store = store
        self._root = root
        self._engines = engines
        self._counted: dict[str, tuple[int, int, int]] = {}
        self._trouble: dict[str, tuple[float, str]] = {}

    def look(self) -> Look:
        """Take a turn with every spool. Whose steps a spool tells is noted before any of them is recorded."""
        self._find()
        waiting = [(drain, self._try(drain, drain.load)) for drain in list(self.drains.values())]
        for drain, events in waiting:
            if events is None:
                continue
            if self._try(drain, drain.record) == 0:
                self._end(drain)
            self._count(drain)
        is_behind = any(events is not None and events >= MOST_EVENTS for _, events in waiting)
        return Look(*self._standing(), again_s=0.0 if is_behind else None)

    def bytes_behind(self) -> int:
        """How much is written and not recorded yet."""
        return sum(drain.bytes_behind() for drain in self.drains.values())

    def close(self) -> None:
        """Take a last turn."""
        self.look()

    def _find(self) -> None:
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in spools(self._root):
            name = writer_name(self._store, folder)
            if name not in self.drains and _is_spool(folder):
                try:
                    self.drains[name] = SpoolDrain(self._store, folder, self._engines)
                except OSError as error:
                    self._note(folder.name, f"cannot read it: {error.strerror}")

    def _try(self, drain: SpoolDrain, turn: Callable[[], int]) -> int | None:
        """What a turn answers; None when it failed, which is noted."""
        try:
            return turn()
        except FileNotFoundError as error:
            self._note(drain.writer, f"{error.filename} was removed by somebody else")
            self.drains.pop(drain.writer, None)
        except (OSError, FareboxError) as error:
            self._note(drain.writer, str(error))
        return None

    def _end(self, drain: SpoolDrain) -> None:
        del self.drains[drain.writer]
        for run in drain.lost_runs:
            self._note(drain.writer, f"the process of {run} ended without a word")

    def _count(self, drain: SpoolDrain) -> None:
        """Note what went wrong since the last look."""
        now = (drain.damaged, drain.dropped, drain.aside.count)
        more = [a - b for a, b in zip(now, self._counted.get(drain.writer, (0, 0, 0)), strict=True)]
        self._counted[drain.writer] = now
        if drain.writer not in self.drains:
            del self._counted[drain.writer]
        for name, count in zip(self.faults, more, strict=True):
            self.faults[name] += count
        words = ("{} damaged lines", "{} events lost by the writer", f"{{}} events kept in {drain.aside.path}")
        said = [text.format(count) for text, count in zip(words, now, strict=True) if count]
        if any(more):
            self._note(drain.writer, ", ".join(said))

    def _note(self, writer: str, why: str) -> None:
        self._trouble[writer] = (time.monotonic(), why)

    def _standing(self) -> tuple[SourceStanding, str | None]:
        horizon = time.monotonic() - TROUBLE_S
        self._trouble = {writer: told for writer, told in self._trouble.items() if told[0] > horizon}
        if self._trouble:
            return "degraded", "; ".join(f"{writer}: {why}" for writer, (_, why) in sorted(self._trouble.items()))
        return "up", None


def _is_spool(folder: Path) -> bool:
    """Whether a writer has it, or had; one that is just being made is left alone."""
    if segments(folder):
        return True
    lock = folder / LOCK
    return lock.exists() and time.time() - lock.stat().st_mtime > _SETTLED_S
