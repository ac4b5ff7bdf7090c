"""Whether the clock can be trusted: everything that is recorded carries its time."""

from __future__ import annotations

import ctypes
import sys
from datetime import UTC, datetime

from .check import Check

_TIME_ERROR = 5
_TIMEX_BYTES = 512
_EARLIEST_YEAR = 2025
_TOLERANCE_NS = 60_000_000_000


def check_clock(now_ns: int, newest_ns: int | None) -> list[Check]:
    """The clock beside reason, beside a time server, and beside what a store has already (its newest instant)."""
    now = datetime.fromtimestamp(now_ns / 1e9, UTC)
    if now.year < _EARLIEST_YEAR:
        return [Check("clock", "bad", f"it says {now:%Y-%m-%d}: that is past", "set it, and turn time sync on")]
    if newest_ns is not None and newest_ns > now_ns + _TOLERANCE_NS:
        ahead_s = (newest_ns - now_ns) // 10**9
        says = f"the store has events {ahead_s} s ahead of the clock ({now:%Y-%m-%d %H:%M:%SZ})"
        return [Check("clock", "bad", says, "check the time of this host and of whoever recorded")]
    synced = is_synced()
    if synced is False:
        return [Check("clock", "note", "no time server keeps it right", "turn time sync on (chrony, timesyncd)")]
    return [Check("clock", "ok", f"{now:%Y-%m-%d %H:%M:%SZ}" + (", kept right by a time server" if synced else ""))]


def is_synced() -> bool | None:
    """Whether the kernel knows that its clock is kept right; None where it cannot be asked."""
    if sys.platform != "linux":
        return None
    try:
        answer = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    except (OSError, AttributeError):
        return None
    return None if answer < 0 else answer != _TIME_ERROR
