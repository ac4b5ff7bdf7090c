"""The constants that explain a recording best, if the steps were those of a replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..roofline.step_model import UNITS_PER_NS
from .replayed import StepLog
from .unknowns import SPREAD, Unknowns, Vector
from .windows import Windows

DECODE_NOISE, PROMPT_NOISE = 0.01, 0.03
"""Relative scatter of a decode's and of a prompt's time that no constant explains."""
DECODE_OUTLIER, PROMPT_OUTLIER = 0.02, 0.1
"""Relative errors beyond these count in proportion, not squared: their steps were other ones in the recording."""
_MOST_STEPS = 60

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Evidence:
    """What a replay's steps and a recording's times say together."""

    unknowns: Unknowns
    steps: StepLog
    decode_attn: Matrix
    prompt_attn: Matrix
    """Attention by the base model, in clock units (float64[steps])."""
    decode: Windows
    prompt: Windows

    def terms(self, logs: Vector) -> Matrix:
        """Every step's time by constant (ns, float64[steps, 7]); each is its own derivative by that logarithm."""
        base, factors = self.unknowns.base, np.exp(logs)
        rows = self.steps.rows.astype(np.float64)
        memory, arithmetic = self._linear()
        memory, arithmetic = memory * factors[1], arithmetic * factors[2]
        longest = np.argmax(memory + arithmetic, axis=0)[None]
        units = [
            np.full_like(rows, base.overhead * factors[0]),
            np.take_along_axis(memory, longest, axis=0)[0],
            np.take_along_axis(arithmetic, longest, axis=0)[0],
            base.row_comm * factors[3] * rows,
            self.decode_attn * factors[4],
            self.prompt_attn * factors[5],
            self.steps.prompts * float(self.unknowns.model(logs).prompt),
        ]
        return np.stack(units, axis=1).astype(np.float64) / UNITS_PER_NS

    def _linear(self) -> tuple[Matrix, Matrix]:
        """Memory's and arithmetic's part of each of the lines whose greatest is L(M) − r·M (float64[lines, steps])."""
        base, rows = self.unknowns.base, self.steps.rows
        lines = [(base.streamed_column(rows), np.zeros_like(rows)), (np.zeros_like(rows), base.row * rows)]
        lines += [(np.full_like(rows, start), slope * rows) for start, slope in base.ridge]
        memory, arithmetic = zip(*lines, strict=True)
        return np.array(memory, dtype=np.float64), np.array(arithmetic, dtype=np.float64)

    def residuals(self, logs: Vector) -> tuple[Vector, Matrix]:
        """Weighted residuals, the prior's last, and their derivatives (float64[n], float64[n, 7])."""
        terms = self.terms(logs)
        parts = [
            _weighted(self.decode, terms, DECODE_NOISE, DECODE_OUTLIER),
            _weighted(self.prompt, terms, PROMPT_NOISE, PROMPT_OUTLIER),
            ((logs - self.unknowns.typical) / SPREAD, np.diag(1 / SPREAD)),
        ]
        return np.concatenate([values for values, _ in parts]), np.concatenate([slopes for _, slopes in parts])


def _weighted(windows: Windows, terms: Matrix, noise: float, outlier: float) -> tuple[Vector, Matrix]:
    """Huber's residuals of the windows' relative errors, and their derivatives."""
    sums: Matrix = windows.sums(terms) / windows.recorded_ns[:, None]
    error: Vector = sums.sum(axis=1) - 1
    size = np.maximum(np.abs(error), 1e-12)
    tamed = np.minimum(size, np.sqrt(np.maximum(2 * outlier * size - outlier**2, size**2 * (size <= outlier))))
    slope = np.minimum(outlier / tamed, 1.0)
    return np.sign(error) * tamed / noise, sums * (slope / noise)[:, None]


def solve(evidence: Evidence, start: Vector) -> tuple[Vector, Matrix]:
    """Levenberg's and Marquardt's way from `start` down to the least sum of squares, within the bounds.

    Returns the point and the covariance of its logarithms there (float64[7], float64[7, 7]).
    """
    least = evidence.unknowns.least
    logs = np.maximum(start, least)
    residuals, slopes = evidence.residuals(logs)
    damping = 1e-2
    for _ in range(_MOST_STEPS):
        normal, gradient = slopes.T @ slopes, slopes.T @ residuals
        total = float(residuals @ residuals)
        better = _downhill(evidence.residuals, logs, least, normal, gradient, damping, total)
        if better is None:
            break
        logs, residuals, slopes, damping = better
        if total - float(residuals @ residuals) < 1e-7 * total:
            break
    covariance = np.asarray(np.linalg.inv(slopes.T @ slopes), dtype=np.float64)
    return logs, covariance


def _downhill(
    residuals_at: Callable[[Vector], tuple[Vector, Matrix]],
    logs: Vector,
    least: Vector,
    normal: Matrix,
    gradient: Vector,
    damping: float,
    total: float,
) -> tuple[Vector, Vector, Matrix, float] | None:
    """The first damped step that lowers the sum of squares; None: there is none."""
    for _ in range(12):
        step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), gradient)
        point = np.maximum(logs - step, least)
        residuals, slopes = residuals_at(point)
        if float(residuals @ residuals) < total:
            return point, residuals, slopes, max(damping / 6, 1e-8)
        damping *= 4
    return None
