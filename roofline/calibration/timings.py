"""Measured step times: what a fit is made from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..replica import Replica
from ..work import Work

Floats = NDArray[np.float64]
PARTS = ("linear", "attention", "allreduce", "head", "elementwise")
"""Kinds of kernels that a measured time may be given by, in the order of `KernelTimes`."""


class Timing(NamedTuple):
    """One measured step; `parts` are its milliseconds by `PARTS`, where they are known."""

    replica: Replica
    work: Work
    phase: str
    measured_ms: float
    parts: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Batch:
    """Steps of one replica as columns (float64[n])."""

    replica: Replica
    work: Work
    phase: NDArray[np.str_]
    measured: Floats
    """Seconds."""
    parts: Floats
    """Seconds by `PARTS` (float64[n, 5]); NaN where only the whole is known."""


def batches(timings: Iterable[Timing]) -> list[Batch]:
    """The steps of each replica together."""
    grouped: dict[Replica, list[Timing]] = {}
    for timing in timings:
        grouped.setdefault(timing.replica, []).append(timing)
    return [_batch(replica, steps) for replica, steps in grouped.items()]


def _batch(replica: Replica, steps: Sequence[Timing]) -> Batch:
    unknown = (np.nan,) * len(PARTS)
    columns = np.array([step.work for step in steps], np.float64).T
    return Batch(
        replica,
        Work(*columns),
        np.array([step.phase for step in steps]),
        np.array([step.measured_ms for step in steps]) / 1e3,
        np.array([step.parts or unknown for step in steps]) / 1e3,
    )
