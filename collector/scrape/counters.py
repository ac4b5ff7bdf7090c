"""Counters: what moved between two readings, and when an engine started anew."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from ...events.buckets import Buckets
from .reading import Cumulative, Reading

SAME_START_S = 2.0
"""How far apart two tellings of one start may lie: some engines compute it anew for each page."""
_SLACK = 1e-9
FELL = "it fell on a page of which lines were lost"


@dataclass(frozen=True)
class Moved:
    """What moved between two readings of one process; a counter that is not known is not in it."""

    counters: dict[str, float] = field(default_factory=dict[str, float])
    histograms: dict[str, Buckets] = field(default_factory=dict[str, Buckets])
    by_tenant: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])

    def tokens(self, noun: str) -> int | None:
        """A counter's movement as a whole number; None when it is not known."""
        value = self.counters.get(noun)
        return None if value is None else round(value)

    @property
    def has_worked(self) -> bool:
        """Whether any token moved."""
        return any(self.counters.get(noun, 0) > 0 for noun in ("prompt_tokens", "computed_tokens", "output_tokens"))


def has_restarted(before: Reading, now: Reading) -> bool:
    """Whether another process told `now`: it is of another engine, started later, or a counter fell, which none does.

    On a page of which lines were lost more has to fall than that.
    """
    if before.engine is not now.engine:
        return True
    if before.start_s is not None and now.start_s is not None and now.start_s > before.start_s + SAME_START_S:
        return True
    return len(_fallen(before, now)) > now.lost_lines


def doubt(before: Reading, now: Reading) -> None:
    """Take out of `now` what fell on a page of which lines were lost: a line that is lost makes a sum smaller."""
    for noun in _fallen(before, now):
        now.missing[noun] = FELL
        now.counters.pop(noun, None)
        now.histograms.pop(noun, None)
    for noun, values in list(now.by_tenant.items()):
        if any(values.get(tenant, 0) < value for tenant, value in before.by_tenant.get(noun, {}).items()):
            del now.by_tenant[noun]


def carried(before: Reading, now: Reading) -> Reading:
    """A reading to count on from: where `now` lacks a counter, the one before stands, so nothing counts twice."""
    counters = before.counters | now.counters
    return replace(
        now,
        counters=counters,
        histograms=before.histograms | now.histograms,
        by_tenant=before.by_tenant | now.by_tenant,
        unclear=sorted({*before.unclear, *now.unclear} - counters.keys()),
    )


def moved_between(before: Reading, now: Reading) -> Moved:
    """What moved from one reading to another of the same process.

    A counter that appears counts from 0 if the page before was whole: many do so with their first event. One that
    was there without a value that can be believed does not.
    """
    was_whole = not before.lost_lines
    return Moved(
        {noun: value - before.counters.get(noun, 0.0) for noun, value in now.counters.items()
         if noun in before.counters or (was_whole and noun not in before.unclear)},
        _whole({noun: _difference(before.histograms.get(noun, {}), buckets) for noun, buckets in now.histograms.items()
                if noun in before.histograms or was_whole}),
        {noun: _tenants(before.by_tenant.get(noun, {}), values) for noun, values in now.by_tenant.items()},
    )  # fmt: skip


def moved_since_start(now: Reading) -> Moved:
    """What a process has done before it was first seen."""
    histograms = {noun: _difference({}, buckets) for noun, buckets in now.histograms.items()}
    return Moved(dict(now.counters), _whole(histograms), {noun: dict(values) for noun, values in now.by_tenant.items()})


def _fallen(before: Reading, now: Reading) -> list[str]:
    """Counters and histograms that are lower than before."""
    counters = [noun for noun, value in before.counters.items() if _fell(value, now.counters.get(noun))]
    return counters + [
        noun
        for noun, buckets in before.histograms.items()
        if noun in now.histograms and _fell(max(buckets.values()), max(now.histograms[noun].values()))
    ]


def _fell(before: float, now: float | None) -> bool:
    return now is not None and now < before - max(_SLACK, abs(before) * _SLACK)


def _tenants(before: dict[str, float], now: dict[str, float]) -> dict[str, float]:
    return {tenant: value - before.get(tenant, 0.0) for tenant, value in now.items()}


def _whole(histograms: dict[str, Buckets]) -> dict[str, Buckets]:
    """Without histograms whose page was written while they moved: a bucket that holds less than nothing."""
    return {noun: buckets for noun, buckets in histograms.items() if all(count >= 0 for _, count in buckets)}


def _difference(before: Cumulative, now: Cumulative) -> Buckets:
    """Values in each bucket, from two tellings of how many lie below each bound."""
    counts: list[tuple[float | None, int]] = []
    below = 0
    for bound in sorted(now):
        up_to = round(now[bound] - before.get(bound, 0.0))
        counts.append((None if math.isinf(bound) else bound, up_to - below))
        below = up_to
    return tuple(counts)
