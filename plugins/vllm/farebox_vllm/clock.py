"""The clock of a run: monotonic, anchored to UTC once, so that setting the host's clock moves nothing."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STARTED = 19
"""Place of `starttime` behind the name of the process in /proc/self/stat (proc(5) counts it as field 22)."""


class Clock:
    """Instants are nanoseconds of the monotonic clock; `utc` tells them to others."""

    def __init__(self) -> None:
        self._anchor_ns = time.time_ns() - time.monotonic_ns()

    def utc(self, monotonic_ns: int) -> int:
        """An instant in UTC nanoseconds."""
        return monotonic_ns + self._anchor_ns


def process_started_ns() -> int:
    """When this process was started, on the monotonic clock; now, where the system does not tell."""
    now_ns = time.monotonic_ns()
    try:
        stat = Path("/proc/self/stat").read_text()
        ticks = int(stat.rpartition(")")[2].split()[_STARTED])
        age_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - ticks * 10**9 // os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return now_ns
    return now_ns - max(0, age_ns)
