"""Fitting the constants of one GPU type to measured steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..constants import Constants, Origin, shipped_constants
from ..errors import SpecError
from ..kernels import Kernels
from ..prediction import kernel_times
from .least_squares import Solution, solve
from .parameters import Parameters, belief_of, value_of
from .timings import Batch, Floats, Timing, batches

NOISE = 0.04
"""Standard deviation of a measured time around what smooth forms can say of it."""
LIMITS_MB = (0.6, 2.2, 8.5, 33.0)
"""Message sizes that are tried as the border between the fast all-reduce kernels and a ring."""
CACHES_MB = (25.0, 45.0, 90.0)
"""Sizes that are tried as where the fit of the L2 cache starts."""
TRIAL = 4
"""Iterations after which starts are compared."""
FIXED = 0.7
"""A constant is fixed by the steps if they leave less than this of its width."""
HOST_US = 300.0
"""Host time of a step that a fit starts from, where whole steps were timed and not kernels."""


class Width(NamedTuple):
    """How well the steps fix a constant: its value, and the standard deviation of it in percent (or as it is)."""

    name: str
    value: float
    deviation: float
    is_fixed: bool


class Fit(NamedTuple):
    """Fitted constants, and how wide each of them is."""

    kernels: Kernels
    widths: list[Width]


def fit(timings: Sequence[Timing], base: Kernels | None = None) -> Fit:
    """The constants that fit these steps best; all of one GPU type.

    They start from `base` (else from typical values) and stay there where the steps say nothing. Raises SpecError for
    steps of several GPU types, or none.
    """
    gpus = {timing.replica.gpu.name for timing in timings}
    if len(gpus) != 1:
        raise SpecError(f"steps of one GPU type are needed, not of {', '.join(sorted(gpus)) or 'none'}")
    columns = batches(timings)
    start = base or _typical(columns)
    with_host = any(np.isnan(batch.parts).any() for batch in columns)
    if with_host and not start.step_us:
        start = replace(start, step_us=HOST_US)
    if any(batch.replica.tp > 1 for batch in columns):
        links = replace(start.reduce, gbps=100.0, ring_gbps=150.0)
        limits = [replace(start, reduce=replace(links, limit_mb=limit)) for limit in LIMITS_MB]
        start = _best(columns, limits, with_host)
    caches = [replace(start, decode=replace(start.decode, cache_mb=cache)) for cache in CACHES_MB]
    start = _best(columns, caches, with_host)
    parameters, solution = _solve(columns, start, with_host)
    kernels = parameters.kernels(solution.vector, start)
    return Fit(kernels, _widths(parameters, solution, kernels))


def _typical(columns: list[Batch]) -> Kernels:
    """Typical values for the weight formats that were measured; others then run like bf16."""
    kernels = shipped_constants("").kernels
    formats = _formats(columns) | {"bf16"}
    return replace(kernels, matrices={name: rates for name, rates in kernels.matrices.items() if name in formats})


def _formats(columns: list[Batch]) -> set[str]:
    return {"fp8" if batch.replica.weights == "int8" else batch.replica.weights for batch in columns}


def _best(columns: list[Batch], starts: list[Kernels], with_host: bool) -> Kernels:
    """The start from which a few steps get nearest: thresholds are tried, since no slope leads to them."""
    return min(starts, key=lambda start: _solve(columns, start, with_host, TRIAL)[1].cost)


def _solve(columns: list[Batch], start: Kernels, with_host: bool, most: int = 60) -> tuple[Parameters, Solution]:
    parameters = Parameters.of(start, _formats(columns), with_host)
    residuals = _residuals(columns, parameters, start)
    return parameters, solve(residuals, parameters.disbelief, parameters.start, most)


def _residuals(columns: list[Batch], parameters: Parameters, start: Kernels) -> Callable[[Floats], Floats]:
    def residuals(vector: Floats) -> Floats:
        constants = Constants(parameters.kernels(vector, start), Origin("fit"))
        return np.concatenate([_off(batch, constants) for batch in columns])

    return residuals


def _off(batch: Batch, constants: Constants) -> Floats:
    """How far predictions are off, in standard deviations: part by part, each by its weight in the step; or whole."""
    times = kernel_times(replace(batch.replica, constants=constants), batch.work)
    whole = np.isnan(batch.parts[:, 0])
    rows = len(batch.measured)
    predicted = np.stack([np.broadcast_to(part, rows) for part in times[:5]], axis=1)
    with np.errstate(all="ignore"):
        parts = np.log(predicted / batch.parts) * np.sqrt(batch.parts / batch.measured[:, None])
        total = np.log(np.broadcast_to(times.total, rows) / batch.measured)
    known = parts[~whole][:, :4]
    return np.concatenate([np.nan_to_num(known, posinf=0.0, neginf=0.0).ravel(), total[whole]]) / NOISE


def _widths(parameters: Parameters, solution: Solution, kernels: Kernels) -> list[Width]:
    widths: list[Width] = []
    for name, deviation, believed in zip(parameters.names, solution.deviations, parameters.widths, strict=True):
        scale = 1.0 if belief_of(name).linear else 100.0
        fixed = bool(deviation < FIXED * believed)
        widths.append(Width(name, value_of(kernels, name), float(deviation) * scale, fixed))
    return widths
