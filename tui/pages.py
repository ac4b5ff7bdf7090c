"""Figures of scraped engines: what their pages say takes the place of what steps would tell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from ..events import Interval
from ..events.buckets import Buckets, add, from_text, quantile, total
from .snapshot import Latency, Snapshot
from .verdict import NO_STEPS

MOST_EVERY = 3
"""Newest intervals of which the longest tells how often the page is read."""


def as_pages_say(snapshot: Snapshot, intervals: Sequence[Interval]) -> Snapshot:
    """The snapshot with gauges of the newest page, and counts and percentiles of the window's intervals."""
    newest = intervals[-1]
    begin = snapshot.now_ns - snapshot.wall_ns
    window = [i for i in intervals if i.started_ns + i.duration_ns > begin]
    histograms = [_histograms(interval.histograms) for interval in window]
    missing: dict[str, str] = json.loads(newest.missing or "{}")
    ttft = _latency(_sum(histograms, "ttft"))
    every = max(interval.duration_ns for interval in list(intervals)[-MOST_EVERY:])
    tells_tokens = not {"prompt_tokens", "output_tokens"} & missing.keys()
    return replace(
        snapshot,
        engine=replace(snapshot.engine, every_ns=every),
        riding=newest.running,
        waiting=newest.waiting,
        kv_ppm=newest.kv_ppm,
        preemptions=_count(interval.preemptions for interval in window),
        finished=_count(interval.requests for interval in window),
        ttft=ttft,
        itl=_latency(_sum(histograms, "itl")),
        latency_reason=missing.get("ttft", snapshot.latency_reason) if ttft is None else None,
        roofline_reason=NO_STEPS,
        alone_ns=None,
        alone_reason=NO_STEPS,
        per_1k=snapshot.per_1k if tells_tokens and snapshot.busy_ns else None,
        missing=missing,
    )


@lru_cache(maxsize=1024)
def _histograms(text: str | None) -> dict[str, Buckets]:
    """Histograms of an interval, which stays in the window for a minute."""
    return from_text(text)


def _count(values: Iterable[int | None]) -> int | None:
    """The sum of what is known; None when nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _sum(histograms: Iterable[dict[str, Buckets]], name: str) -> Buckets:
    return add(found[name] for found in histograms if name in found)


def _latency(buckets: Buckets) -> Latency | None:
    p50, p99 = quantile(buckets, 0.5), quantile(buckets, 0.99)
    if p50 is None or p99 is None:
        return None
    return Latency(p50.ns, p99.ns, total(buckets), p50.is_more, p99.is_more)
