"""Evidence: what of the recorded traffic speaks for a change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ...costing import arrow
from ..traffic import Recorded
from ..words import percent_text
from .candidate import Look

HOUR_NS = 3_600_000_000_000


def fast_share(look: Look) -> str:
    """Part of the tenants' time and tokens that fast requests have."""
    time, tokens = [0, 0], [0, 0]
    for row in look.before.ledger.to_pylist():
        if row["account"] in ("tenant", "underfill"):
            is_fast = row["tier"] == "fast" or row["account"] == "underfill"
            time[is_fast] += row["gpu_ns"]
            tokens[is_fast] += row["output_tokens"] + row["prompt_tokens"]
    parts = [percent_text(each[1] / sum(each) if sum(each) else None) for each in (time, tokens)]
    return f"they and the seats kept empty take {parts[0]} of the time in steps for {parts[1]} of the tokens"


def waited_ns(look: Look) -> int:
    """How long 99 % of the requests that rode waited for a seat at most."""
    column: Any = look.before.requests.column("scheduled_ns")
    rode = column.is_valid().to_numpy()
    arrived = arrow.ints(look.before.requests, "arrived_ns")[rode]
    waited: list[int] = (column.drop_null().to_numpy() - arrived).tolist()
    return quantile(waited, 0.99) if waited else 0


def shared_part(recorded: Recorded) -> float | None:
    """Part of all prompt tokens whose prefix block came before on the same engine; null: no prefix is known."""
    seen: defaultdict[str, set[int]] = defaultdict(set)
    again = whole = 0
    for run in recorded.runs:
        known, size = seen[run.run.engine_id], run.config.prefix_block_tokens
        for arrival in run.arrivals:
            whole += arrival.prompt_tokens
            ids = arrival.prefix_ids or ()
            again += min(arrival.prompt_tokens, size * sum(one in known for one in ids))
            known.update(ids)
    return again / whole if again else None


def quantile(values: Sequence[int], part: float) -> int:
    """The smallest value that at least `part` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(len(ordered) * part * 1000) // 1000) - 1)]


def by_hour(recorded: Recorded) -> list[int]:
    """Requests by UTC hour of day."""
    counts = [0] * 24
    for arrival in recorded.arrivals:
        counts[arrival.arrived_ns // HOUR_NS % 24] += 1
    return counts


def busy_hours(counts: Sequence[int], least: float) -> tuple[int, int] | None:
    """The shortest stretch of hours [from, to) outside of which no hour has more than `least` of the busiest one's
    requests; it may pass midnight. Null when that is the whole day.
    """
    limit = max(counts) * least
    busy = [count > limit for count in counts]
    if all(busy):
        return None
    length, end = max((_quiet(busy, start), start) for start in range(24))
    return (end + length) % 24, end % 24


def _quiet(busy: Sequence[bool], start: int) -> int:
    """Hours without much to do from `start` on."""
    return next((n for n in range(24) if busy[(start + n) % 24]), 24)
