"""Streams of arrivals: several into one, and the same traffic in less time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain
from operator import attrgetter

from ..arrival import Arrival

_ID_BITS = 48


def merge(*streams: Iterable[Arrival]) -> Iterator[Arrival]:
    """One stream in order of arrival; at the same instant the earlier stream goes first. Nothing is read ahead.

    Prefix ids are a stream's own: equal ones of two streams are told apart.
    """
    if len(streams) == 1:
        return iter(streams[0])
    apart = (stream if number == 0 else _apart(stream, number << _ID_BITS) for number, stream in enumerate(streams))
    return heapq.merge(*apart, key=attrgetter("arrived_ns"))


def densify(arrivals: Iterable[Arrival], load: int | Fraction) -> Iterator[Arrival]:
    """The same requests, `load` times as dense, from the first arrival on; offsets are rounded down to the nanosecond.

    How long a client waits before it hangs up stays as it is.

    Raises:
        ValueError: a load that is not positive.
    """
    factor = Fraction(load)
    if factor <= 0:
        raise ValueError(f"load is {load}; it must be above 0")
    return iter(arrivals) if factor == 1 else _denser(arrivals, factor)


def peek(arrivals: Iterable[Arrival]) -> tuple[Arrival | None, Iterator[Arrival]]:
    """The first arrival (None: there is none) and the whole stream, the first included."""
    stream = iter(arrivals)
    first = next(stream, None)
    return first, stream if first is None else chain([first], stream)


def _apart(arrivals: Iterable[Arrival], first_id: int) -> Iterator[Arrival]:
    for arrival in arrivals:
        ids = arrival.prefix_ids
        yield arrival if ids is None else arrival._replace(prefix_ids=tuple(first_id + prefix_id for prefix_id in ids))


def _denser(arrivals: Iterable[Arrival], factor: Fraction) -> Iterator[Arrival]:
    first, stream = peek(arrivals)
    for arrival in stream:
        base_ns = arrival.arrived_ns if first is None else first.arrived_ns
        arrived_ns = base_ns + (arrival.arrived_ns - base_ns) * factor.denominator // factor.numerator
        shift_ns = arrived_ns - arrival.arrived_ns
        abort_ns = None if arrival.abort_ns is None else arrival.abort_ns + shift_ns
        yield arrival._replace(arrived_ns=arrived_ns, abort_ns=abort_ns)
