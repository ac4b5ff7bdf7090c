"""Alerts of a collector's rules. What a rule of the screen tells of the same thing stands for both."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import TYPE_CHECKING, NamedTuple

from .. import numbers
from ..snapshot import Alert, Severity

if TYPE_CHECKING:
    from ...events import Alert as Recorded
    from .watch import Watch


class Kind(NamedTuple):
    """What a rule's alerts are: the key of the screen's rule for the same thing, how bad it is, what to do next."""

    twin: str
    severity: Severity
    step: str


KINDS = {
    "source-down": Kind("source", "bad", "What it would tell is missing, not zero: farebox doctor STORE looks at it."),
    "budget": Kind("budget", "bad", "See who spends it: farebox report STORE --by team"),
    "preemptions": Kind("preemption", "bad", "Lower max_num_seqs, or give the KV cache more memory."),
    "kv-full": Kind("kv", "bad", "Give the KV cache more memory, or cap prompt and output lengths."),
    "idle": Kind("idle", "warn", "Put more traffic on this engine, or stop it in quiet hours."),
    "unobserved": Kind("lost", "warn", "Find out why the engine told nothing: farebox doctor STORE"),
}
OTHER = Kind("", "warn", "See the collector's configuration for what this rule means.")


def recorded(watch: Watch, told: Set[str]) -> Iterator[Alert]:
    """The collector's alerts that go on, but those whose key, or whose twin's, is `told`."""
    for alert in watch.recorded:
        kind = KINDS.get(alert.rule, OTHER)
        if told.isdisjoint(_twins(alert, kind, watch.snapshot.engine.engine_id)):
            since = f"It holds since {numbers.clock(alert.since_ns)} UTC, by the collector's rule {alert.rule}."
            yield Alert(f"{alert.rule}:{alert.about}", kind.severity, alert.text, since, kind.step)


def _twins(alert: Recorded, kind: Kind, watched: str) -> set[str]:
    """Keys under which the screen tells the same; its rules for engines look at the one that is watched."""
    if alert.rule == "source-down":
        return {f"{kind.twin}:{alert.about}"}
    if alert.rule == "budget":
        team, _, period = alert.about.rpartition(" ")
        return {f"{kind.twin}:{team}:{period}"}
    return {kind.twin} if alert.about == watched else set()
