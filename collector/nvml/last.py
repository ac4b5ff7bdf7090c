"""The newest readings in a store, and how long ago a silent card was heard of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...events import GpuSample, GpuState
from ...storage.live import LiveReader

STALE_NS = 10_000_000_000
"""Readings older than this are of a GPU that is not watched any more, or of a driver that fails."""
BACK_NS = 7_200_000_000_000


class LastSeen(NamedTuple):
    """A device as it was last seen: `good` is its last full reading, `since_ns` when its state began."""

    newest: GpuSample
    good: GpuSample | None
    state: GpuState
    since_ns: int


def last_seen(reader: LiveReader, now_ns: int) -> list[LastSeen]:
    """Every device and slice with readings in the last two hours, by host, number and id."""
    rows, after = reader.gpu_samples(since_ns=now_ns - BACK_NS)
    seen: dict[tuple[str, str], LastSeen] = {}
    while rows:
        _follow(seen, rows)
        rows, after = reader.gpu_samples(after)
    found = (_aged(one, now_ns) for one in seen.values())
    return sorted(found, key=lambda one: (one.newest.host, one.newest.device, one.newest.parent_uuid or ""))


def _follow(seen: dict[tuple[str, str], LastSeen], rows: Iterable[GpuSample]) -> None:
    for row in rows:
        before = seen.get((row.host, row.gpu_uuid))
        state: GpuState = row.state  # pyright: ignore[reportAssignmentType] -- the store keeps plain text
        since_ns = before.since_ns if before is not None and before.state == state else row.at_ns
        good = row if state == "ok" else before and before.good
        seen[row.host, row.gpu_uuid] = LastSeen(row, good, state, since_ns)


def _aged(one: LastSeen, now_ns: int) -> LastSeen:
    if now_ns - one.newest.at_ns <= STALE_NS:
        return one
    return one._replace(state="stale", since_ns=one.newest.at_ns)
