"""How a source stands over time: a new stretch when that changes, else the old one goes on."""

from __future__ import annotations

from ..events import SourceStanding, SourceState

SEEN_NS = 10_000_000_000
"""How far `seen_ns` may lag behind."""


class StandingLog:
    """Turns what each look at a source found into the few records that are worth keeping."""

    def __init__(self, source: str, kind: str) -> None:
        self._source = source
        self.kind = kind
        self._kept: SourceState | None = None

    def see(self, at_ns: int, state: SourceStanding, why: str | None) -> SourceState | None:
        """The record to keep, if it is time for one: something changed, or the last one is 10 s old."""
        kept = self._kept
        if kept is None or (kept.state, kept.why) != (state, why):
            self._kept = SourceState(self._source, self.kind, state, at_ns, at_ns, why)
        elif at_ns - kept.seen_ns >= SEEN_NS:
            self._kept = kept._replace(seen_ns=at_ns)
        else:
            return None
        return self._kept
