"""The traffic of a run: all traces merged, checked, and as dense as asked for."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from ..errors import InputError

if TYPE_CHECKING:
    from fractions import Fraction

    from ..engine.arrival import Arrival
    from .trace import Trace

MAX_SPAN_DAYS = 366
"""The longest run: the ledger has a line for every minute, idle ones too."""
_DAY_NS = 86_400_000_000_000


def traffic(traces: Sequence[Trace], start_ns: int, load: Fraction, limit: int | None) -> list[Arrival]:
    """The first `limit` arrivals of all traces in time order, `load` times as dense; `InputError` if unfit."""
    from ..engine.workloads.merge import densify, merge

    merged = merge(*(trace.arrivals(start_ns) for trace in traces))
    arrivals = list(islice(densify(merged, load), limit))
    _refuse_doubles(arrivals)
    _refuse_long_spans(arrivals)
    return arrivals


def factor(flag: str, text: str, most: int) -> Fraction:
    """A number between 1/`most` and `most`, exact; `InputError` names the flag."""
    from fractions import Fraction

    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        number = Fraction(0)
    if number <= 0:
        raise InputError(f"{flag} {text}: must be a number above zero")
    if not 1 <= number * most <= most * most:
        raise InputError(f"{flag} {text}: must be between {1 / most:g} and {most:g}")
    return number


def _refuse_doubles(arrivals: Sequence[Arrival]) -> None:
    if len({arrival.request_id for arrival in arrivals}) == len(arrivals):
        return
    ids: set[str] = set()
    for arrival in arrivals:
        if arrival.request_id in ids:
            raise InputError(f'--trace: two sources are both tenant "{arrival.tenant_id}"; name one: azure:NAME=PATH')
        ids.add(arrival.request_id)


def _refuse_long_spans(arrivals: Sequence[Arrival]) -> None:
    days = (arrivals[-1].arrived_ns - arrivals[0].arrived_ns) // _DAY_NS if arrivals else 0
    if days > MAX_SPAN_DAYS:
        first, last = arrivals[0].request_id, arrivals[-1].request_id
        raise InputError(
            f"the trace spans {days:,} days, from request {first} to {last}; the most is {MAX_SPAN_DAYS}."
            " Is a date or --load mistyped? --limit N takes the first N requests only"
        )
