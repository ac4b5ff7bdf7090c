"""A batch: what travels from costing to a store in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

    from .run import Run


class Progress(NamedTuple):
    """How much of a run is recorded. Replaying a run skips this much, so that nothing is ever counted twice."""

    steps: int
    """Steps recorded: the next expected `step_seq`."""
    requests: int
    """Request records recorded, in the order in which the engine told them."""
    covered_ns: int
    """Everything before this instant (UTC) is in the ledger."""


class Batch(NamedTuple):
    """Events of one run since the batch before, split and booked: all of it is recorded, or none."""

    run: Run
    steps: pa.Table
    shares: pa.Table
    requests: pa.Table
    ledger: pa.Table
    progress: Progress
    intervals: pa.Table | None = None
    """Intervals of a scraped engine; None: it is not scraped."""
