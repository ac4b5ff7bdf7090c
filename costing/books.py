"""The books: everything that a bill is made from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..events import MINUTE_NS
from . import arrow
from .periods import Period

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from ..events import Budget, Capacity, Closing, Rate, Run, TeamRename, Tenant, TokenPrice


@dataclass(frozen=True)
class Books:
    """What was measured (the ledger and the runs) and what people set beside it.

    `ledger` has the LEDGER schema and must hold the whole of every period that is asked about.
    """

    ledger: pa.Table
    runs: tuple[Run, ...]
    rates: tuple[Rate, ...] = ()
    capacities: tuple[Capacity, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    renames: tuple[TeamRename, ...] = ()
    prices: tuple[TokenPrice, ...] = ()
    budgets: tuple[Budget, ...] = ()
    closings: tuple[Closing, ...] = ()
    """The closings that stand."""
    reopened: tuple[Closing, ...] = ()
    """Those that were reopened since."""
    ledgers: Mapping[str, pa.Table] = field(default_factory=dict[str, "pa.Table"])
    """Closed time under other policies than the ledger's, where it was closed with them."""

    @property
    def seen_ns(self) -> int:
        """The end of the newest minute that something is known of, UTC; 0 when nothing is."""
        ends = [0, *(-(-run.wall_end_ns // MINUTE_NS) * MINUTE_NS for run in self.runs)]
        minutes = arrow.ints(self.ledger, "minute_ns")
        if len(minutes):
            ends.append(int(minutes.max()) + MINUTE_NS)
        return max(ends)


def all_time(runs: Sequence[Run], minutes: tuple[int, int] | None) -> Period:
    """All time that a run or a ledger line tells of, in whole minutes; `minutes` are the first and the last line's."""
    first, last = ([minutes[0]], [minutes[1] + MINUTE_NS]) if minutes else ([], [])
    start = min([*(run.started_ns for run in runs), *first], default=0) // MINUTE_NS * MINUTE_NS
    end = -(-max([*(run.wall_end_ns for run in runs), *last], default=0) // MINUTE_NS) * MINUTE_NS
    return Period.between(start, max(end, start + MINUTE_NS))
