"""Options that describe recorded traffic and a scenario, for `whatif` and `advise`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .clock import instant

if TYPE_CHECKING:
    from ..costing.periods import Period
    from ..storage.store import Store

from_time_option = click.option(
    "--from", "start", metavar="TIME", help="Traffic since: 2026-10-01 or 2026-10-01T12:00Z.  [default: all]"
)
to_time_option = click.option("--to", "end", metavar="TIME", help="Traffic until.")
slo_option = click.option(
    "--slo",
    "slos",
    multiple=True,
    metavar="[TENANT:]ttft=TIME[,tpot=TIME]",
    help="What was promised for 99 % of a tenant's requests, as voice:ttft=300ms.",
)


def window_of(store: Store, start: str | None, end: str | None, tz: str) -> Period | None:
    """The period that the options name; None for all that is recorded."""
    from ..costing.periods import Period
    from ..events import MINUTE_NS

    if start is None and end is None:
        return None
    runs = store.runs()
    first = min((run.started_ns for run in runs), default=0) // MINUTE_NS * MINUTE_NS
    last = -(-max((run.wall_end_ns for run in runs), default=0) // MINUTE_NS) * MINUTE_NS
    from_ns = first if start is None else instant(start, tz)
    return Period.between(from_ns, last if end is None else instant(end, tz), tz)
