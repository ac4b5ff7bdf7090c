"""Usage on its way from a proxy's spool to the scraper of the engine behind it."""

from __future__ import annotations

import threading
from collections import deque
from typing import NamedTuple

from ...events import Spooled, Usage

MOST = 100_000
"""Usage that waits for the next scrape; beyond that the oldest is given up."""


class _Waiting(NamedTuple):
    usage: Usage
    before: Spooled
    behind: Spooled


class UsageQueue:
    """What was told of one engine and no interval has used yet.

    `take` hands usage over; `used` then tells up to where each spool is used, which belongs into the transaction that
    records the interval, and `keep` says that it is recorded. `lost` counts what was given up. From any thread.
    """

    def __init__(self, engine_id: str, most: int = MOST) -> None:
        self.engine_id = engine_id
        self.lost = 0
        self._most = most
        self._waiting: deque[_Waiting] = deque()
        self._taken: list[_Waiting] = []
        self._turn = threading.Lock()

    def offer(self, usage: Usage, before: Spooled, behind: Spooled) -> None:
        """Queue usage that stands between two places of a spool."""
        with self._turn:
            self._waiting.append(_Waiting(usage, before, behind))
            if len(self._waiting) > self._most:
                self._waiting.popleft()
                self.lost += 1

    def take(self, until_ns: int) -> list[Usage]:
        """What was told up to the first usage at `until_ns` (UTC) or later, each once."""
        found: list[Usage] = []
        with self._turn:
            while self._waiting and self._waiting[0].usage.at_ns < until_ns:
                self._taken.append(self._waiting.popleft())
                found.append(self._taken[-1].usage)
        return found

    def used(self) -> list[Spooled]:
        """Up to where each spool is used with what was taken: places of `WRITER/ENGINE`."""
        with self._turn:
            newest = {one.behind.writer: one.behind for one in self._taken}
        return [place._replace(writer=usage_place(writer, self.engine_id)) for writer, place in newest.items()]

    def keep(self) -> None:
        """What was taken is recorded."""
        with self._turn:
            self._taken.clear()

    def first_place(self, writer: str) -> Spooled | None:
        """The place before the first usage of a writer that is not used yet; None: there is none."""
        with self._turn:
            both = [*self._taken, *self._waiting]
        return next((one.before for one in both if one.before.writer == writer), None)


def usage_place(writer: str, engine_id: str) -> str:
    """Under what name the place of an engine's usage in a writer's spool is kept."""
    return f"{writer}/{engine_id}"
