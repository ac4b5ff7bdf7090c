"""The memory of a page: what it said when it was last recorded, so that a new collector goes on from there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .mapping import engines
from .reading import Reading

_KEPT = 2
"""The newest may not be recorded: the one before it is kept as well."""
_PLAIN = ("gauges", "counters", "by_tenant", "facts", "model", "start_s", "lost_lines", "unclear")


class PageMemory:
    """Keeps an engine's newest readings in a file, by the instant (UTC ns) up to which they are recorded."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept = self._load()

    def keep(self, at_ns: int, reading: Reading) -> None:
        """Keep a reading before it is recorded; raises OSError where there is no room."""
        self._kept = dict(sorted((self._kept | {at_ns: _plain(reading)}).items())[-_KEPT:])
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        unborn = self._path.with_suffix(".tmp")
        unborn.write_text(json.dumps({str(at): one for at, one in self._kept.items()}))
        unborn.replace(self._path)

    def at(self, at_ns: int) -> Reading | None:
        """The reading that is recorded up to an instant; None when it is not known, or was kept by another version."""
        try:
            kept = self._kept[at_ns]
            histograms = {noun: {float(bound): count for bound, count in pairs} for noun, pairs in kept["histograms"]}
            return Reading(engines()[kept["engine"]], histograms=histograms, **{name: kept[name] for name in _PLAIN})
        except (KeyError, TypeError, ValueError):
            return None

    def _load(self) -> dict[int, dict[str, Any]]:
        try:
            return {int(at): one for at, one in json.loads(self._path.read_text()).items()}
        except (OSError, ValueError, AttributeError):
            return {}  # nothing is remembered: counting begins with the next look


def _plain(reading: Reading) -> dict[str, Any]:
    histograms = [
        (noun, [(str(bound), count) for bound, count in of.items()]) for noun, of in reading.histograms.items()
    ]
    return {"engine": reading.engine.kind, "histograms": histograms} | {name: getattr(reading, name) for name in _PLAIN}
