"""Buckets of a latency histogram: how many values of an interval lay between two bounds."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import NamedTuple

Buckets = tuple[tuple[float | None, int], ...]
"""(upper bound in s, values above the bound before and up to this one), rising; a bound of None has no end."""


class Quantile(NamedTuple):
    """A quantile in ns; `is_more`: it lies beyond the last bound, which is all that is known."""

    ns: int
    is_more: bool


def to_text(histograms: dict[str, Buckets]) -> str | None:
    """Histograms as the JSON of `Interval.histograms`; None when there is none.

    Bounds below the first value and above the last are left out, but for the one where the first bucket begins.
    """
    told = {name: trim(buckets) for name, buckets in histograms.items()}
    return json.dumps(told, separators=(",", ":")) if told else None


def from_text(text: str | None) -> dict[str, Buckets]:
    """Read what `to_text` wrote."""
    told: dict[str, list[tuple[float | None, int]]] = json.loads(text) if text else {}
    return {name: tuple((bound, count) for bound, count in buckets) for name, buckets in told.items()}


def trim(buckets: Buckets) -> Buckets:
    """Without empty buckets at both ends, but for the one that bounds the first from below."""
    filled = [i for i, (_, count) in enumerate(buckets) if count]
    return buckets[max(0, filled[0] - 1) : filled[-1] + 1] if filled else ()


def total(buckets: Buckets) -> int:
    """How many values there are."""
    return sum(count for _, count in buckets)


def add(parts: Iterable[Buckets]) -> Buckets:
    """The sum of histograms of one kind, whichever bounds each of them tells."""
    counts: dict[float, int] = {}
    for buckets in parts:
        for bound, count in buckets:
            key = math.inf if bound is None else bound
            counts[key] = counts.get(key, 0) + count
    return tuple((None if bound == math.inf else bound, counts[bound]) for bound in sorted(counts))


def quantile(buckets: Buckets, part: float) -> Quantile | None:
    """The value that `part` (0…1) of the values do not exceed, evenly spread within its bucket; None without values."""
    rank, below, lower = part * total(buckets), 0, 0.0
    if rank <= 0:
        return None
    for bound, count in buckets:
        if count and below + count >= rank:
            if bound is None:
                return Quantile(round(lower * 1e9), is_more=True)
            return Quantile(round((lower + (bound - lower) * (rank - below) / count) * 1e9), is_more=False)
        below += count
        lower = lower if bound is None else bound
    return Quantile(round(lower * 1e9), is_more=True)
