"""The metrics page: what was recorded since the collector began, and how everything stands now."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ...events import BUDGET_STATES, INTERVALS, SOURCE_STATES, STEPS, BudgetState, newest_states
from ..spooled.source import SpoolSource
from ..totals import Owner, Totals
from .money import Money
from .naming import Naming

if TYPE_CHECKING:
    from ...storage.live import LiveReader

LIVE_NS = 60_000_000_000
"""Engines that told nothing for so long have no gauges."""
NS = 1e9
COUNTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "farebox_gpu_seconds": ("GPU time by whose it is.", ("engine", "account", "tenant")),
    "farebox_tokens": ("Tokens; prompt includes cached.", ("engine", "tenant", "kind")),
    "farebox_requests": ("Requests that ended.", ("engine", "tenant")),
    "farebox_cost": ("What GPU time cost by the store's rates.", ("engine", "account", "tenant", "currency")),
    "farebox_unpriced_gpu_seconds": ("GPU time that no rate has a price for.", ("engine",)),
    "farebox_preemptions": ("Sequences put off the batch.", ("engine",)),
    "farebox_spool_faults": ("Lines damaged, events dropped or refused.", ("source", "fault")),
}
GAUGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "farebox_running": ("Sequences on board.", ("engine",)),
    "farebox_waiting": ("Requests in the queue.", ("engine",)),
    "farebox_seats": ("The most sequences that one step may run.", ("engine",)),
    "farebox_kv_used_ratio": ("KV cache in use, the fullest replica.", ("engine",)),
    "farebox_source_state": ("1 for the state that a source is in.", ("source", "kind", "state")),
    "farebox_spool_behind_bytes": ("Spooled and not recorded yet.", ("source",)),
    "farebox_budget_spent": ("Spent of a budget.", ("team", "period", "currency")),
    "farebox_budget_limit": ("A budget's limit.", ("team", "period", "currency", "limit")),
}
STATES = ("up", "degraded", "down")
Labels = tuple[str, ...]


class FareboxPage(Collector):
    """All families, as prometheus_client asks for them."""

    def __init__(
        self, reader: LiveReader, totals: Totals, most_tenants: int, spools: Callable[[], list[SpoolSource]]
    ) -> None:
        self._reader = reader
        self._totals = totals
        self._money = Money()
        self._naming = Naming(most_tenants)
        self._spools = spools

    def describe(self) -> Iterator[Metric]:
        """Nothing beforehand: the registry need not read a store to know the names."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Everything as it is now."""
        self._totals.refresh()
        self._money.add(self._totals.take_unpriced(), self._reader.rates())
        for name, values in self._counts().items():
            yield self._counter(name, values)
        for name, values in self._levels().items():
            yield _gauge(name, values)

    def _counts(self) -> Mapping[str, Mapping[Labels, float]]:
        totals = self._totals
        found: dict[str, defaultdict[Labels, float]] = {name: defaultdict(float) for name in COUNTERS}
        for owner, gpu_ns in totals.gpu_ns.items():
            found["farebox_gpu_seconds"][self._owner(owner)] += gpu_ns / NS
        kinds = {"prompt": totals.prompt_tokens, "cached": totals.cached_tokens, "output": totals.output_tokens}
        for kind, counts in kinds.items():
            for owner, tokens in counts.items():
                if owner.account == "tenant":
                    found["farebox_tokens"][owner.engine_id, self._naming.name(owner.tenant_id), kind] += tokens
        for owner, requests in totals.requests.items():
            if owner.account == "tenant":
                found["farebox_requests"][owner.engine_id, self._naming.name(owner.tenant_id)] += requests
        for (owner, currency), amount in self._money.amounts().items():
            found["farebox_cost"][*self._owner(owner), currency] += amount
        for engine_id, gpu_ns in self._money.unpriced.items():
            found["farebox_unpriced_gpu_seconds"][(engine_id,)] += gpu_ns / NS
        for engine_id, count in totals.preemptions.items():
            found["farebox_preemptions"][(engine_id,)] += count
        for spool in self._spools():
            for fault, count in spool.faults.items():
                found["farebox_spool_faults"][spool.name, fault] += count
        return found

    def _owner(self, owner: Owner) -> Labels:
        return owner.engine_id, owner.account, self._naming.name(owner.tenant_id)

    def _levels(self) -> Mapping[str, Mapping[Labels, float]]:
        found: dict[str, dict[Labels, float]] = {name: {} for name in GAUGES}
        self._engines(found)
        for state in newest_states(self._reader.settings(SOURCE_STATES)):
            for one in STATES:
                found["farebox_source_state"][state.source, state.kind, one] = float(state.state == one)
        for spool in self._spools():
            found["farebox_spool_behind_bytes"][(spool.name,)] = spool.bytes_behind()
        budgets: list[BudgetState] = self._reader.settings(BUDGET_STATES)
        for budget in budgets:
            key = (budget.team, budget.period, budget.currency)
            if budget.spent_micro is not None:
                found["farebox_budget_spent"][key] = budget.spent_micro / 1e6
            for limit, micro in (("soft", budget.soft_micro), ("hard", budget.hard_micro)):
                if micro is not None:
                    found["farebox_budget_limit"][*key, limit] = micro / 1e6
        return found

    def _engines(self, found: dict[str, dict[Labels, float]]) -> None:
        since_ns = time.time_ns() - LIVE_NS
        steps, intervals = self._reader.newest(STEPS, since_ns), self._reader.newest(INTERVALS, since_ns)
        for told in (*steps, *intervals):
            for name, value in (("running", told.running), ("waiting", told.waiting), ("kv_used_ratio", told.kv_part)):
                if value is not None:
                    found[f"farebox_{name}"][(told.engine_id,)] = value
        seats = {(run.engine_id, run.run_id): run.max_num_seqs for run in self._reader.runs()}
        for step in steps:
            known = seats.get((step.engine_id, step.run_id))
            if known is not None:
                found["farebox_seats"][(step.engine_id,)] = known

    def _counter(self, name: str, values: Mapping[Labels, float]) -> Metric:
        text, labels = COUNTERS[name]
        family = CounterMetricFamily(name, text, labels=labels)
        for key, value in values.items():
            family.add_metric(key, value, created=self._totals.began_s)
        return family


def _gauge(name: str, values: Mapping[Labels, float]) -> Metric:
    text, labels = GAUGES[name]
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family
