"""A source's state: whether it can be read, since when, and why not."""

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from .table import Table, col

SourceStanding = Literal["up", "degraded", "down"]


class SourceState(NamedTuple):
    """One stretch of time in which a source stood as it did; the newest one of a source moves `seen_ns` on."""

    source: Annotated[str, col("", "the source, as the configuration names it")]
    kind: Annotated[str, col("", "what it is: vllm, sglang, nvml, spool …")]
    state: Annotated[str, col("", "up, degraded or down")]
    since_ns: Annotated[int, col("UTC ns", "when that began")]
    seen_ns: Annotated[int, col("UTC ns", "when it was last looked at")]
    why: Annotated[str | None, col("", "what is wrong and what to do; null: nothing is")]


SOURCE_STATES = Table(
    "source_states", SourceState, key=("source", "since_ns"), time="since_ns", sort=("source", "since_ns")
)


def newest_states(states: Iterable[SourceState]) -> list[SourceState]:
    """How every source stands now, those that were heard of first before the others."""
    return list({state.source: state for state in sorted(states, key=lambda state: state.since_ns)}.values())
