"""Least squares that forgives outliers: Levenberg-Marquardt with residuals reweighted as it goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .timings import Floats

Residuals = Callable[[Floats], Floats]
STEP = 1e-5
"""Distance at which derivatives are taken."""
ENOUGH = 1e-5
"""Relative gain below which a fit has arrived."""


class Solution(NamedTuple):
    """Where the fit ended, what is left, and the standard deviation of every parameter around it."""

    vector: Floats
    cost: float
    deviations: Floats


def solve(data: Residuals, belief: Residuals, start: Floats, most: int = 60) -> Solution:
    """Minimise Σ ρ(data) + Σ belief², ρ(z) = 2(√(1 + z²) − 1): square for small residuals, linear for outliers.

    Both functions give residuals in standard deviations (float64[n]) for a vector (float64[k]).
    """
    vector, damping = start, 1e-2
    now = _cost(data(vector), belief(vector))
    for _ in range(most):
        jacobian, residuals = _linearised(data, belief, vector)
        slope, curvature = jacobian.T @ residuals, jacobian.T @ jacobian
        before = now
        while damping < 1e8:
            trial = vector - np.linalg.solve(curvature + damping * np.diag(np.diag(curvature) + 1e-9), slope)
            cost = _cost(data(trial), belief(trial))
            if cost < now:
                vector, now, damping = trial, cost, damping / 5
                break
            damping *= 4
        if before - now <= ENOUGH * before:
            break
    jacobian, _ = _linearised(data, belief, vector)
    covariance = np.linalg.pinv(jacobian.T @ jacobian)
    return Solution(vector, now, np.sqrt(np.diag(covariance)))


def _cost(data: Floats, belief: Floats) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        cost = float(np.sum(2 * (np.sqrt(1 + data**2) - 1)) + np.sum(belief**2))
    return cost if np.isfinite(cost) else np.inf


def _linearised(data: Residuals, belief: Residuals, vector: Floats) -> tuple[Floats, Floats]:
    """Jacobian and residuals of data and belief (float64[n, k], float64[n]), outliers weighed down."""
    at = data(vector)
    columns = [(data(vector + shift) - at) / STEP for shift in STEP * np.eye(len(vector))]
    weights = (1 + at**2) ** -0.25
    hopes = belief(vector)
    hope_columns = [(belief(vector + shift) - hopes) / STEP for shift in STEP * np.eye(len(vector))]
    jacobian = np.vstack([np.array(columns).T * weights[:, None], np.array(hope_columns).T])
    return jacobian, np.concatenate([at * weights, hopes])
