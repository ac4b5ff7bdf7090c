"""What holds right now: each rule's findings, before it is known how long they last."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ...events import BUDGET_STATES, INTERVALS, SOURCE_STATES, STEPS, BudgetState, newest_states
from ..config.alerts import RuleConfig, RuleKind
from ..totals import Totals

if TYPE_CHECKING:
    from ...storage.live import LiveReader

LIVE_NS = 60_000_000_000
DEFAULTS: dict[RuleKind, tuple[float, float]] = {
    "source-down": (0, 60),
    "idle": (0.8, 1800),
    "unobserved": (0.05, 600),
    "budget": (0, 0),
    "preemptions": (1.0, 60),
    "kv-full": (0.95, 60),
    "spinning": (0.99, 600),
}
"""For each rule: above what, and for how many seconds; over that window for those that compare two moments."""
WINDOWED: tuple[RuleKind, ...] = ("idle", "unobserved", "preemptions", "spinning")
SPINNING_PCT = 90


def bounds_of(rule: RuleConfig) -> tuple[float, float]:
    """Above what a rule holds, and for how many seconds: as its section says, else its default."""
    above, seconds = DEFAULTS[rule.kind]
    return above if rule.above is None else rule.above, seconds if rule.seconds is None else rule.seconds


class Finding(NamedTuple):
    """Something that a rule holds of."""

    about: str
    text: str


class _Moment(NamedTuple):
    at_s: float
    gpu_ns: Counter[tuple[str, str]]
    preemptions: Counter[str]


class Findings:
    """Looks at a store and at the totals of the last hours; `clock` gives seconds, tests pass their own."""

    def __init__(self, reader: LiveReader, totals: Totals, clock: Callable[[], float] = time.monotonic) -> None:
        self._reader = reader
        self._totals = totals
        self._clock = clock
        self._past: deque[_Moment] = deque()

    def look(self, longest_s: float) -> None:
        """Take the totals as they are; moments older than the longest window are forgotten."""
        self._totals.refresh()
        gpu_ns: Counter[tuple[str, str]] = Counter()
        for owner, ns in self._totals.gpu_ns.items():
            gpu_ns[owner.engine_id, owner.account] += ns
        now_s = self._clock()
        self._past.append(_Moment(now_s, gpu_ns, self._totals.preemptions.copy()))
        while len(self._past) > 2 and self._past[1].at_s <= now_s - longest_s:
            self._past.popleft()

    def of(self, rule: RuleConfig) -> list[Finding]:
        """What a rule holds of now."""
        limit, window_s = bounds_of(rule)
        if rule.kind == "source-down":
            return list(self._down())
        if rule.kind == "budget":
            return list(self._budgets())
        if rule.kind == "kv-full":
            found = self._full(limit)
        elif rule.kind == "spinning":
            found = self._spinning(limit, window_s)
        elif rule.kind == "preemptions":
            found = self._preempting(limit, window_s)
        else:
            found = self._wasted(rule.kind, limit, window_s)
        return [one for one in found if rule.engine in (None, one.about)]

    def _down(self) -> Iterator[Finding]:
        for state in newest_states(self._reader.settings(SOURCE_STATES)):
            if state.state == "down":
                yield Finding(state.source, f"{state.source} cannot be read: {state.why or 'no reason told'}")

    def _budgets(self) -> Iterator[Finding]:
        budgets: list[BudgetState] = self._reader.settings(BUDGET_STATES)
        for budget in budgets:
            about = f"{budget.team} {budget.period}"
            if budget.state.startswith("above"):
                yield Finding(about, f"the budget of {about} is {budget.state}")
            elif budget.hard_day is not None:
                yield Finding(about, f"at this pace {about} reaches its hard limit on {budget.hard_day}")

    def _full(self, limit: float) -> Iterator[Finding]:
        since_ns = time.time_ns() - LIVE_NS
        newest = [*self._reader.newest(STEPS, since_ns), *self._reader.newest(INTERVALS, since_ns)]
        used = {told.engine_id: told.kv_part for told in newest if told.kv_part is not None}
        for engine_id, part in used.items():
            if part > limit:
                yield Finding(engine_id, f"{part:.0%} of the KV cache of {engine_id} is in use")

    def _preempting(self, limit: float, window_s: float) -> Iterator[Finding]:
        then, now = self._window(window_s)
        lasted_s = now.at_s - then.at_s
        for engine_id, count in now.preemptions.items():
            rate = (count - then.preemptions[engine_id]) / lasted_s if lasted_s else 0.0
            if rate > limit:
                yield Finding(engine_id, f"{engine_id} puts {rate:.1f} sequences a second off the batch")

    def _wasted(self, account: str, limit: float, window_s: float) -> Iterator[Finding]:
        then, now = self._window(window_s)
        if now.at_s - then.at_s < 0.9 * window_s:
            return
        for engine_id in sorted({engine_id for engine_id, _ in now.gpu_ns}):
            more = {key[1]: ns - then.gpu_ns[key] for key, ns in now.gpu_ns.items() if key[0] == engine_id}
            total = sum(more.values())
            if total and more.get(account, 0) / total > limit:
                part = more[account] / total
                yield Finding(engine_id, f"{part:.0%} of the last {window_s / 60:.0f} min of {engine_id} is {account}")

    def _spinning(self, limit: float, window_s: float) -> Iterator[Finding]:
        """Engines without work whose GPUs look busy all the same, as tensor-parallel workers make them."""
        idle = {found.about for found in self._wasted("idle", limit, window_s)}
        samples = self._reader.gpu_samples(since_ns=time.time_ns() - LIVE_NS)[0] if idle else []
        for run in self._reader.runs():
            if run.engine_id not in idle or run.ended_ns is not None:
                continue
            loads = [
                s.util_pct for s in samples if s.gpu_uuid in run.gpu_uuids or (not run.gpu_uuids and s.host == run.host)
            ]
            known = [load for load in loads if load is not None]
            if known and min(known) >= SPINNING_PCT:
                yield Finding(
                    run.engine_id, f"GPUs of {run.engine_id} are busy without tokens: {min(known)} % load, no work"
                )

    def _window(self, window_s: float) -> tuple[_Moment, _Moment]:
        """The newest moment, and the one so many seconds before it, or as near as there is."""
        now = self._past[-1]
        before = [moment for moment in self._past if moment.at_s <= now.at_s - window_s]
        return (before[-1] if before else self._past[0]), now
