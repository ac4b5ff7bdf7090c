"""The fit: replay, see which steps made up every answer, find constants that explain the recorded times; again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..engine.config import EngineConfig
from ..roofline import Replica
from ..roofline.scales import Scales
from .judge import PartErrors, RunErrors, part_errors, run_errors
from .least_squares import Evidence, Matrix, solve
from .mixing import Mixing
from .recorded import Recording
from .replayed import Replayed, replay_recorded
from .unknowns import Unknowns, Vector
from .windows import decode_windows, prompt_windows

JOLTS = (
    (Scales(prompt_us=1.0), 8),
    (Scales(overhead=0.8, weights=0.95, row=0.97, kv=0.93, prompt_us=0.8), 4),
    (Scales(overhead=1.2, weights=1.05, row=1.03, kv=1.08, prompt_us=1.2), 4),
)
"""Factors by which the best point so far is moved before a descent, and the replays that this takes at most: who gets
preempted flips with small changes, so one descent may end in a poor place."""
_CLOSE = 1e-3
NUDGES = (0.006, 0.003)
"""How far, at last, all times and those of prompts are moved together while that brings the replay nearer: a queue
shows tenths of a percent that single answers do not."""
MOST_REPLAYS = sum(rounds for _, rounds in JOLTS) + len(NUDGES) * 4
_ALL, _PROMPTS = np.array([1.0, 1, 1, 1, 1, 1, 1]), np.array([0.0, 0, 1, 0, 0, 1, 1])
"""Directions in the space of the logarithms (`NAMES`)."""


@dataclass(frozen=True)
class Fit:
    """The constants found, how sure they are, and how far a replay with them is from the recording.

    `logs` are the logarithms of `scales`, see `Unknowns`.
    """

    scales: Scales
    cold_start_ns: int
    logs: Vector
    covariance: Matrix
    """Of the logarithms, in the order of `NAMES`."""
    evidence: Evidence
    replayed: Replayed
    fitted: PartErrors
    judged: PartErrors
    """Over the requests that the fit has not seen."""
    run: RunErrors

    @property
    def unknowns(self) -> Unknowns:
        """What the fit could change."""
        return self.evidence.unknowns


def fit(
    recording: Recording,
    replica: Replica,
    config: EngineConfig,
    fit_requests: int,
    on_replay: Callable[[int, int], None] | None = None,
    ranks: int = 1,
) -> Fit:
    """Fit constants on the first `fit_requests` requests of a recording, and judge them on the others.

    Every replay serves all requests, since those behind compete with those before; but only the recorded times of the
    first ones are looked at. Of all replays the one that fits those best wins. `on_replay` is told how many of how many
    replays are done at most. `ranks` data-parallel ones share the work in lock step; `replica` is one of them.
    """
    search = _Search(recording, Unknowns(replica), config, ranks, fit_requests, on_replay or _silent)
    for jolt, rounds in JOLTS:
        search.descend(jolt, rounds)
    search.nudge()
    best = search.best
    served = best.replayed.served
    return Fit(
        scales=search.unknowns.scales(best.logs),
        cold_start_ns=best.cold_start_ns,
        logs=best.logs,
        covariance=best.covariance,
        evidence=best.evidence,
        replayed=best.replayed,
        fitted=part_errors(recording.requests[:fit_requests], served[:fit_requests]),
        judged=part_errors(recording.requests[fit_requests:], served[fit_requests:]),
        run=run_errors(recording, best.replayed),
    )


@dataclass(frozen=True)
class _Candidate:
    logs: Vector
    cold_start_ns: int
    replayed: Replayed
    evidence: Evidence
    covariance: Matrix
    loss: float


class _Search:
    def __init__(
        self,
        recording: Recording,
        unknowns: Unknowns,
        config: EngineConfig,
        ranks: int,
        fit_requests: int,
        on_replay: Callable[[int, int], None],
    ) -> None:
        self.unknowns = unknowns
        self._known = recording.requests[:fit_requests]
        self._arrivals = [request.arrival for request in recording.requests]
        self._config, self._ranks = config, ranks
        self._on_replay = on_replay
        self._replays = 0
        self._candidates: list[_Candidate] = []

    @property
    def best(self) -> _Candidate:
        """The candidate whose replay is nearest to the known requests."""
        return min(self._candidates, key=lambda candidate: candidate.loss)

    def descend(self, jolt: Scales, rounds: int) -> None:
        """Replay and solve in turn from near the best point, until the constants stay or the rounds are over."""
        best = self.best if self._candidates else None
        logs = (self.unknowns.typical if best is None else best.logs) + self.unknowns.point(jolt)
        cold_start_ns = 0 if best is None else best.cold_start_ns
        mixing = Mixing()
        for _ in range(rounds):
            replayed = self._replay(logs, cold_start_ns)
            evidence = self._evidence(replayed, logs)
            found, covariance = solve(evidence, logs)
            self._candidates.append(
                _Candidate(logs, cold_start_ns, replayed, evidence, covariance, self._loss(replayed))
            )
            late_ns = self._known[0].first_token_ns - replayed.served[0].first_token_ns
            cold_start_ns = max(0, cold_start_ns + late_ns)
            if float(np.abs(found - logs).max()) < _CLOSE:
                break
            logs = mixing.next(logs, found)

    def nudge(self) -> None:
        """Move the best point along the directions that a run tells best, while replays get nearer."""
        for size in NUDGES:
            for direction in (_ALL, _PROMPTS):
                if not self._nudged(size * direction):
                    self._nudged(-size * direction)

    def _nudged(self, change: Vector) -> bool:
        best = self.best
        logs = np.maximum(best.logs + change, self.unknowns.least)
        replayed = self._replay(logs, best.cold_start_ns)
        evidence = self._evidence(replayed, logs)
        nudged = _Candidate(logs, best.cold_start_ns, replayed, evidence, best.covariance, self._loss(replayed))
        self._candidates.append(nudged)
        return self.best is nudged

    def _loss(self, replayed: Replayed) -> float:
        return part_errors(self._known, replayed.served[: len(self._known)]).loss

    def _replay(self, logs: Vector, cold_start_ns: int) -> Replayed:
        config = replace(self._config, step_model=self.unknowns.model(logs), cold_start_ns=cold_start_ns)
        replayed = replay_recorded(config, self._arrivals, self._ranks)
        self._replays += 1
        self._on_replay(self._replays, MOST_REPLAYS)
        return replayed

    def _evidence(self, replayed: Replayed, logs: Vector) -> Evidence:
        steps, factors = replayed.steps, np.exp(logs)
        return Evidence(
            unknowns=self.unknowns,
            steps=steps,
            decode_attn=steps.decode_attn / factors[4],
            prompt_attn=steps.prompt_attn / factors[5],
            decode=decode_windows(self._known, replayed),
            prompt=prompt_windows(self._known, replayed),
        )


def _silent(_done: int, _most: int) -> None:
    """Nobody watches."""
