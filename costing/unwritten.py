"""Lines that no run wrote: declared time without a run, and payers of idle time who did not ride where it is paid."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..events import LedgerLine
from . import arrow
from .capacity import Place, Slice
from .grouping import group
from .idle import payers
from .rate_card import NO_RATE
from .segments import Ints

if TYPE_CHECKING:
    import pyarrow as pa

    from .capacity import Expected
    from .periods import Span
    from .rating import IdlePolicy
    from .teams import Register


class Unwritten(NamedTuple):
    """A line and the number of the rate that prices it."""

    rate: int
    line: LedgerLine


class _PlaceDay(NamedTuple):
    day: int
    place: Place


class _Riders:
    """Who rode on a place and day: everybody, and those whose time there has a rate."""

    def __init__(self) -> None:
        self.all: set[str] = set()
        self.rated: set[str] = set()


def unobserved_lines(unobserved: dict[Slice, int], days: Sequence[Span]) -> Iterator[Unwritten]:
    """Declared time that no run accounts for."""
    for (day, place, rate), gpu_ns in unobserved.items():
        if gpu_ns > 0:
            yield Unwritten(rate, _line(days[day].from_ns, place, "unobserved", gpu_ns=gpu_ns))


def payer_lines(
    policy: IdlePolicy,
    ledger: pa.Table,
    day: Ints,
    rate: Ints,
    register: Register,
    paid: Expected,
    days: Sequence[Span],
) -> Iterator[Unwritten]:
    """Lines without time for those who pay for idle time and have no line that could carry the amount.

    A payer gets one at each rate of the place's idle time that day, since that is what is paid for. `day` and `rate`
    are numbers for each ledger line (int64[rows]).
    """
    if policy == "separate":
        return
    idle, riders = _present(ledger, day, rate)
    for where, found in sorted(idle.items()):
        rates, rode = found - {NO_RATE} or found, riders[where]
        carry = rode.all if rates == {NO_RATE} else rode.rated
        span, up = days[where.day], paid.up.get(where.place, [])
        for tenant in sorted(payers(policy, rode.all, register.rows, up, span) - carry):
            for each in sorted(rates):
                yield Unwritten(each, _line(span.from_ns, where.place, "tenant", tenant_id=tenant))


def _present(
    ledger: pa.Table, day: Ints, rate: Ints
) -> tuple[dict[_PlaceDay, set[int]], defaultdict[_PlaceDay, _Riders]]:
    """The rates of idle time, and the riders, by place and day."""
    names = ("host", "gpu_type", "account", "tenant_id")
    used = np.flatnonzero(arrow.ints(ledger, "gpu_ns") > 0)
    rows = arrow.pick(ledger.select(names), used)
    groups = group({"day": day[used], "rate": rate[used], **{name: arrow.ranks(rows, name) for name in names}})
    columns = (arrow.texts(rows, name, groups.first).to_pylist() for name in names)
    idle: defaultdict[_PlaceDay, set[int]] = defaultdict(set)
    riders: defaultdict[_PlaceDay, _Riders] = defaultdict(_Riders)
    keys = (groups.keys["day"].tolist(), groups.keys["rate"].tolist())
    for number, each, host, gpu_type, account, tenant in zip(*keys, *columns, strict=True):
        where = _PlaceDay(number, Place(host, gpu_type))
        if account == "idle":
            idle[where].add(each)
        elif account == "tenant":
            riders[where].all.add(tenant)
            if each != NO_RATE:
                riders[where].rated.add(tenant)
    return idle, riders


def _line(minute_ns: int, place: Place, account: str, tenant_id: str = "", gpu_ns: int = 0) -> LedgerLine:
    return LedgerLine(minute_ns, "", *place, account, tenant_id, "", "", "", gpu_ns, 0, 0, 0, 0, 0, "")
