"""Numbers as text, the same on every screen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

SECOND_NS = 1_000_000_000


def share(part: int, whole: int) -> float | None:
    """`part` of `whole`, 0…1 for what is really a part; None when there is no whole."""
    return part / whole if whole > 0 else None


def nearest_rank(ordered: Sequence[int], percents: int) -> int:
    """The smallest of some rising values that at least `percents` % of them do not exceed; there must be one."""
    return ordered[-(-len(ordered) * percents // 100) - 1]


def percent(part: float | None) -> str:
    """`0.271` as `27 %`; `–` when unknown. Something that is not nothing never shows as 0."""
    if part is None:
        return "–"
    if 0 < part < 0.005:
        return "<1 %"
    return f"{part * 100:.0f} %"


def count(value: float) -> str:
    """A count or a rate in at most five characters: 61, 3410, 13.4k, 1.2M."""
    if value < 10 and value != int(value):
        return f"{value:.1f}"
    if value < 9_999.5:
        return f"{value:.0f}"
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if value < 999.5 * size:
            return f"{value / size:.1f}{unit}" if value < 99.95 * size else f"{value / size:.0f}{unit}"
    return f"{value:.0e}"


def per_second(amount: int | None, wall_ns: int) -> str:
    """An amount over a window as a rate per second; `–` for an empty window or an unknown amount."""
    return count(amount * SECOND_NS / wall_ns) if wall_ns > 0 and amount is not None else "–"


def per_minute(amount: int, wall_ns: int) -> str:
    """An amount over a window as a rate per minute; `–` for an empty window."""
    return count(amount * 60 * SECOND_NS / wall_ns) if wall_ns > 0 else "–"


def millis(ns: int | None) -> str:
    """Nanoseconds as milliseconds in three digits or whole ones; `–` when unknown."""
    if ns is None:
        return "–"
    ms = ns / 1e6
    return f"{ms:.2f}" if ms < 9.995 else f"{ms:.1f}" if ms < 99.95 else f"{ms:.0f}"


def seconds(ns: int) -> str:
    """A duration in the largest fitting unit: `4 s`, `12 min`, `3 h`."""
    s = ns // SECOND_NS
    return f"{s} s" if s < 120 else f"{s // 60} min" if s < 7200 else f"{s // 3600} h"


def clock(ns: int) -> str:
    """Time of day, UTC."""
    return datetime.fromtimestamp(ns // SECOND_NS, UTC).strftime("%H:%M:%S")


def date(ns: int) -> str:
    """The UTC day."""
    return datetime.fromtimestamp(ns // SECOND_NS, UTC).strftime("%Y-%m-%d")
