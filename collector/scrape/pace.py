"""When to read a page again: often enough to see, rarely enough not to be a load, and to let engines sleep."""

from __future__ import annotations

from ..backoff import FIRST_NS

PERIOD_S = 5.0
"""A page is read every 5 s: some engines render it on the loop that serves requests."""
LONGEST_S = 300.0
LONGEST_FAILED_S = 30.0
"""An engine that comes up again is seen this soon: what it does unseen can be counted, but not timed."""
PART = 0.05
"""Reading may take this part of a server's time, when it answers slowly."""
STILL_LOOKS = 3
"""Pages without movement after which an engine that can sleep is looked at more and more rarely."""


class Pace:
    """Waits between two reads of one server."""

    def __init__(self, period_s: float = PERIOD_S, *, may_sleep: bool = False) -> None:
        self._period_s = period_s
        self.may_sleep = may_sleep
        """Every read keeps the engine from sleeping."""
        self._still = 0
        self._failures = 0
        self._took_s = 0.0
        self.wait_s = period_s
        """How long to wait now."""

    def read(self, took_s: float, *, moved: bool) -> None:
        """Take note of a page that took so long, and whether anything moved on it; one slow page is no slow server."""
        self._failures = 0
        self._still = 0 if moved else self._still + 1
        wait = max(self._period_s, min(took_s, self._took_s) / PART)
        self._took_s = took_s
        if self.may_sleep and self._still >= STILL_LOOKS:
            wait *= 2 ** (self._still - STILL_LOOKS + 1)
        self.wait_s = min(wait, LONGEST_S)

    def failed(self) -> None:
        """Take note of a page that could not be read: the wait doubles each time."""
        self._failures += 1
        self.wait_s = min(FIRST_NS / 1e9 * 2 ** min(self._failures - 1, 12), LONGEST_FAILED_S)

    def is_late(self, elapsed_s: float) -> bool:
        """Whether more time passed since the page before than the plan was: a look was missed."""
        return elapsed_s > 3 * self.wait_s + 10
