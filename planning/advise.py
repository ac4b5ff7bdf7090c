"""Advice: levers tried on recorded traffic, ranked by what they save, none of which breaks a promise."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..errors import InputError
from ..events import Advice
from .baseline import Baseline, baseline_of
from .comparison import per_month
from .guard import broken
from .levers import Candidate, candidates_of
from .levers.candidate import Look
from .live import as_it_was
from .outcome import Outcome, Waits
from .pool import live_all
from .scenario import Scenario, parse_scenario
from .slo import Slo, duration_text
from .traffic import Recorded, groups_of
from .words import moved_text, wait_text

if TYPE_CHECKING:
    from ..storage.store import Store

WORTH, WORTH_FREED = 0.01, 0.05
"""Advice saves this part of the invoice, or frees this part of the busy time without making the invoice dearer."""
CLOSE, NEAR = 0.05, 0.35
"""So far may a replay as it was be from the recorded cost for its changes to be trusted, and to be trusted at all."""


class Tried(NamedTuple):
    """What a replay came to. Amounts are micro-units, null where not all of it has a rate."""

    total_micro: int | None
    currency: str
    wall_gpu_ns: int
    busy_gpu_ns: int
    waits: dict[str, Waits]


class Refused(NamedTuple):
    """A change that would save money and is not proposed, and why."""

    candidate: Candidate
    why: str


@dataclass(frozen=True)
class Advised:
    """The advice on recorded traffic, the best first; empty: nothing is worth doing."""

    baseline: Baseline
    before: Tried
    advice: tuple[Advice, ...]
    refused: tuple[Refused, ...]
    tried: int
    """Replays that were done."""
    missing: int
    """Replays that an interruption prevented."""


def advise(
    store: Store,
    recorded: Recorded,
    slos: Sequence[Slo],
    window: Sequence[str] = (),
    *,
    at_ns: int,
    on_done: Callable[[int, int], None] = lambda done, whole: None,
) -> Advised:
    """Try what the traffic allows. `window` has the arguments that name the time, for commands.

    `on_done` gets the number of replays done and of all.
    """
    was = as_it_was(recorded)
    before, baseline = tried(recorded, Scenario(), was), baseline_of(store, recorded, was)
    look = Look(recorded, was, tuple(slos))
    candidates = [each for each in candidates_of(look) if _can_be(recorded, each)]
    scenarios = [scenario_of(each.arguments) for each in candidates]
    found = live_all(recorded, scenarios, tried, lambda done: on_done(done, len(scenarios)))
    judge = _Judge(recorded, before, baseline, tuple(slos), tuple(window), at_ns)
    rows = [judge.advice(candidates[number], after) for number, after in found.items()]
    refused = [row for row in rows if isinstance(row, Refused)]
    best = _best([row for row in rows if isinstance(row, Advice)])
    return Advised(baseline, before, best, tuple(refused), len(found), len(scenarios) - len(found))


def scenario_of(arguments: Sequence[str]) -> Scenario:
    """The scenario that arguments of `farebox whatif` describe."""
    found: dict[str, list[str]] = {"--set": [], "--route": [], "--endpoint": []}
    for flag, value in zip(arguments[::2], arguments[1::2], strict=True):
        found[flag].append(value)
    return parse_scenario(found["--set"], found["--route"], found["--endpoint"])


def tried(recorded: Recorded, scenario: Scenario, outcome: Outcome) -> Tried:
    """What advice keeps of a replay."""
    return Tried(
        outcome.total_micro if outcome.is_whole else None,
        outcome.bill.currency,
        outcome.usage.wall_gpu_ns,
        outcome.steps.busy_gpu_ns,
        {tenant: outcome.waits(tenant) for tenant in recorded.tenants},
    )


def _can_be(recorded: Recorded, candidate: Candidate) -> bool:
    """Whether a candidate is more than an idea: its model fits, its endpoint has a name of its own."""
    try:
        scenario = scenario_of(candidate.arguments)
        scenario.check(recorded)
        for name, runs in groups_of(recorded.runs).items():
            for run in runs:
                scenario.change_of(name).apply(run.config)
    except InputError:
        return False
    return True


def _best(rows: Sequence[Advice]) -> tuple[Advice, ...]:
    """The best of each lever, ranked by what is saved, then by what is freed."""
    ordered = sorted(rows, key=_value, reverse=True)
    first = {row.lever: row for row in reversed(ordered)}
    kept = [row for row in ordered if first[row.lever] is row]
    return tuple(row._replace(rank=rank) for rank, row in enumerate(kept, start=1))


def _value(row: Advice) -> tuple[int, int]:
    return row.saved_micro or 0, row.freed_gpu_ns


class _Judge(NamedTuple):
    """Whether what was tried is worth proposing."""

    recorded: Recorded
    before: Tried
    baseline: Baseline
    slos: tuple[Slo, ...]
    window: tuple[str, ...]
    at_ns: int

    def advice(self, candidate: Candidate, after: Tried) -> Advice | Refused | None:
        """The advice, why it is none although it would save, or None where it would not."""
        saved, freed = self._saved(after), self.before.busy_gpu_ns - after.busy_gpu_ns
        if not self._is_worth(saved, freed, after):
            return None
        why = broken(self.before.waits, after.waits, self.slos)
        if why is not None:
            return Refused(candidate, why)
        command = ["farebox", "whatif", str(self.recorded.store), *self.window, *candidate.arguments]
        return Advice(
            rank=0,
            lever=candidate.lever,
            title=candidate.title,
            evidence=candidate.evidence,
            effect=_effect(self.before.waits, after.waits),
            confidence=self._confidence(candidate),
            command=shlex.join([*command, *self._promises()]),
            currency=None if saved is None else self.before.currency,
            saved_micro=None if saved is None else per_month(saved, self.recorded),
            freed_gpu_ns=per_month(freed, self.recorded),
            from_ns=self.recorded.from_ns,
            to_ns=self.recorded.to_ns,
            advised_ns=self.at_ns,
        )

    def _saved(self, after: Tried) -> int | None:
        """Off the invoice of the recorded time; null where it cannot be told."""
        if self.before.total_micro is None or after.total_micro is None or after.currency != self.before.currency:
            return None
        return self.before.total_micro - after.total_micro

    def _is_worth(self, saved: int | None, freed: int, after: Tried) -> bool:
        if self.before.total_micro is not None and saved is None:
            return False
        paid = self.before.wall_gpu_ns if saved is None else self.before.total_micro or 0
        less = self.before.wall_gpu_ns - after.wall_gpu_ns if saved is None else saved
        return less > WORTH * paid or (less >= 0 and freed > WORTH_FREED * self.before.busy_gpu_ns)

    def _promises(self) -> list[str]:
        found: list[str] = []
        for slo in self.slos:
            named = (("ttft", slo.ttft_ns), ("tpot", slo.tpot_ns))
            limits = [f"{name}={duration_text(ns)}" for name, ns in named if ns is not None]
            found += ["--slo", f"{slo.tenant}:{','.join(limits)}"]
        return found

    def _confidence(self, candidate: Candidate) -> str:
        replay, is_close, is_near = self._replay()
        steps = self.baseline.certainty or "calibrated here"
        told = {
            "scheduling": f"{'high' if is_close else 'medium'}: the same engines and step times; {replay}",
            "hardware": f"medium: step times of other hardware are predicted, {steps}; {replay}",
            "answers": f"low until answers are judged: they become others or shorter; {replay}",
        }
        return told[candidate.rests_on] if is_near else f"low: {replay}"

    def _replay(self) -> tuple[str, bool, bool]:
        """How far the replay as it was is from the recorded cost, and whether that is close to it, or near at least."""
        if self.baseline.is_exact:
            return "the replay as it was is exact", True, True
        error = self.baseline.errors.get("cost")
        if error is None:
            return "what the replay as it was should cost is not recorded", False, False
        return f"the replay as it was costs {moved_text(error)}", abs(error) <= CLOSE, abs(error) <= NEAR


def _effect(before: Mapping[str, Waits], after: Mapping[str, Waits]) -> str:
    """Every tenant's latency before and after."""
    return "; ".join(f"{tenant}: {_moves(before[tenant], waits)}" for tenant, waits in after.items())


def _moves(before: Waits, after: Waits) -> str:
    parts: list[str] = []
    for name in ("ttft", "tpot"):
        had, has = getattr(before, name), getattr(after, name)
        if had is not None and has is not None:
            parts.append(f"p99 {name.upper()} {wait_text(had.p99_ns)} → {wait_text(has.p99_ns)}")
    return ", ".join(parts) or "no answer"
