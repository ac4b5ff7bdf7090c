"""How sure a fit is: ranges of the constants, which of them the recording tells apart, and what it tells of all."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..roofline.step_model import UNITS_PER_NS
from .fit import Fit
from .unknowns import SPREAD, Vector

NAMES = ("overhead", "weights", "row", "row_comm", "kv", "attention", "prompt")
"""The step model's constants, in the order of the unknowns."""
SIGMAS = 1.645
"""Standard deviations on each side of a 90 % range."""
TOLD_BY_RUN = 0.5
"""A constant is told by the run when its range is less than this part of the one that it had before."""
ENTANGLED = 0.6
"""Correlation beyond which two constants are known in sum better than each."""


class Range(NamedTuple):
    """A constant of the step model (ns) with its 90 % range."""

    name: str
    ns: float
    low_ns: float
    high_ns: float
    is_told: bool
    """Whether the run tells it; else the range is about what was believed before."""


class Entangled(NamedTuple):
    """Two constants of which a run tells the combination rather than each."""

    one: str
    other: str
    correlation: float


class StepTime(NamedTuple):
    """A kind of step of the replay: its time, and the 90 % range's half width as a fraction of it."""

    kind: str
    ms: float
    width: float


def ranges(fit: Fit) -> list[Range]:
    """The constants with their ranges; those that this replica does not have are left out."""
    model = fit.unknowns.model(fit.logs)
    units = (model.overhead, model.weights, model.row, model.row_comm, model.kv_token, model.attn_pair, model.prompt)
    deviations = np.sqrt(np.diag(fit.covariance))
    found: list[Range] = []
    for name, value, deviation, before in zip(NAMES, units, deviations, SPREAD, strict=True):
        if value:
            ns, factor = value / UNITS_PER_NS, float(np.exp(SIGMAS * deviation))
            found.append(Range(name, ns, ns / factor, ns * factor, bool(deviation < TOLD_BY_RUN * before)))
    return found


def entangled(fit: Fit) -> list[Entangled]:
    """Pairs of constants that the run does not tell apart, the worst first."""
    deviations = np.sqrt(np.diag(fit.covariance))
    correlations = fit.covariance / np.outer(deviations, deviations)
    pairs = [Entangled(NAMES[i], NAMES[j], float(correlations[i, j])) for i, j in combinations(range(len(NAMES)), 2)]
    return sorted((p for p in pairs if abs(p.correlation) > ENTANGLED), key=lambda pair: -abs(pair.correlation))


def step_times(fit: Fit) -> list[StepTime]:
    """What the run tells best: the time of its usual decode step, and of its largest step with prompts."""
    terms, steps = fit.evidence.terms(fit.logs), fit.replayed.steps
    decodes = np.flatnonzero(steps.prompts == 0)
    found: list[StepTime] = []
    if len(decodes):
        usual = decodes[np.argsort(steps.rows[decodes])[len(decodes) // 2]]
        found.append(_step_time(fit, f"decode, {steps.rows[usual]} riders", terms[usual]))
    if steps.prompts.any():
        largest = int(np.argmax(steps.rows * steps.prompts))
        found.append(_step_time(fit, f"with prompts, {steps.rows[largest]} rows", terms[largest]))
    return found


def _step_time(fit: Fit, kind: str, terms: Vector) -> StepTime:
    total_ns = float(terms.sum())
    deviation = float(np.sqrt(terms @ fit.covariance @ terms)) / total_ns
    return StepTime(kind, total_ns / 1e6, SIGMAS * deviation)
