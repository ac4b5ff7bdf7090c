"""The pace: how virtual time follows the clock on the wall."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

BEAT_NS = 500_000_000
_NS_PER_S = 1_000_000_000


class Pace:
    """Virtual time runs `speed` times as fast as real time, from the moment at which it is started.

    It starts `lead_ns` of virtual time behind, and that much is done at once, as fast as the machine can. `clock` gives
    real nanoseconds, `sleep` takes seconds; tests hand in their own.

    Raises:
        ValueError: a speed that is not positive and finite.
    """

    def __init__(
        self,
        speed: float = 1.0,
        clock: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
        lead_ns: int = 0,
    ) -> None:
        if not 0 < speed < math.inf:
            raise ValueError(f"speed is {speed:g}; it must be a positive number")
        self.speed = speed
        self._lead_ns = lead_ns
        self._clock = clock
        self._sleep = sleep
        self._real_ns = self._beat_ns = clock()
        self._virtual_ns = 0

    def start(self, virtual_ns: int) -> None:
        """Virtual time is `virtual_ns` now, and has the lead to catch up."""
        self._real_ns = self._beat_ns = self._clock()
        self._virtual_ns = virtual_ns + self._lead_ns

    @property
    def now_ns(self) -> int:
        """The virtual time that it should be now."""
        return self._virtual_ns + int((self._clock() - self._real_ns) * self.speed)

    def is_beat_due(self) -> bool:
        """Whether it is time for a sign of life; asking when it is due starts the next wait."""
        now = self._clock()
        if now - self._beat_ns < BEAT_NS:
            return False
        self._beat_ns = now
        return True

    def sleep_towards(self, virtual_ns: int) -> None:
        """Sleep until virtual time `virtual_ns`, or until the next sign of life is due if that is sooner."""
        ahead_ns = (virtual_ns - self.now_ns) / self.speed
        to_beat_ns = self._beat_ns + BEAT_NS - self._clock()
        nap_ns = min(ahead_ns, to_beat_ns)
        if nap_ns > 0:
            self._sleep(nap_ns / _NS_PER_S)
