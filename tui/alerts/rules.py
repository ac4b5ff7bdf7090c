"""All rules, and the order in which their alerts are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..snapshot import Alert
from .memory import kv_full, preemption
from .money import budgets, rates, token_prices
from .recorded import recorded
from .sources import engine_lost, sources
from .traffic import batch_of_one, held, idle, prefill_stall, seats_taken
from .watch import Watch

Rule = Callable[[Watch], Iterator[Alert]]
RULES: tuple[Rule, ...] = (
    *(engine_lost, sources, preemption, kv_full, prefill_stall, held),
    *(seats_taken, budgets, batch_of_one, idle, token_prices, rates),
)
"""By what matters first: what puts riders off stands above the queue that it causes."""


def alerts_of(watch: Watch) -> tuple[Alert, ...]:
    """What every rule finds, and the collector's rules have found, bad things first and none twice."""
    found = [alert for rule in RULES for alert in rule(watch)]
    found += recorded(watch, {alert.key for alert in found})
    return tuple(sorted(found, key=lambda alert: alert.severity != "bad"))
