"""The interval record: what the page said between two readings, each value or the reason why it has none."""

from __future__ import annotations

import json

from ...events import Interval, Run
from ...events.buckets import to_text
from .counters import Moved
from .mapping import HISTOGRAMS
from .reading import NOT_HERE, Reading

_COUNTED = ("prompt_tokens", "cached_tokens", "output_tokens", "requests", "preemptions")
NEW_HERE = "it was not on the page before: what moved is known from the next interval on"
TORN = "its buckets do not add up on this page"


def interval_of(
    run: Run, seq: int, began_ns: int, ended_ns: int, now: Reading, moved: Moved, unseen: str | None
) -> Interval:
    """The interval of a run that a pseudo-step of this number stands for; `unseen` says why its time is not known."""
    missing: dict[str, str] = {}
    counted = {noun: moved.tokens(noun) for noun in _COUNTED}
    busy_s = moved.counters.get("busy_s")
    for noun, value in counted.items():
        if value is None:
            missing[noun] = now.missing.get(noun, NEW_HERE)
    if busy_s is None:
        missing["busy_ns"] = unseen or now.missing.get("busy_s", NEW_HERE)
    for noun in ("running", "waiting"):
        if noun not in now.gauges:
            missing[noun] = now.missing.get(noun, NOT_HERE)
    if not now.kv_ratios:
        missing["kv_ppm"] = now.missing.get("kv_ratio", NOT_HERE)
    for noun in HISTOGRAMS:
        if noun not in moved.histograms:
            missing[noun] = now.missing.get(noun, TORN)
    return Interval(
        run.engine_id,
        run.run_id,
        seq,
        began_ns,
        ended_ns - began_ns,
        _whole(now.gauges.get("running")),
        _whole(now.gauges.get("waiting")),
        tuple(round(ratio * 1e6) for ratio in now.kv_ratios) or None,
        **counted,
        busy_ns=None if busy_s is None else round(busy_s * 1e9),
        histograms=to_text(moved.histograms),
        missing=json.dumps(missing, separators=(",", ":")) if missing else None,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
