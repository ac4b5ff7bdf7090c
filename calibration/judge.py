"""How far a replay is from the recording, in the figures that people plan with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .recorded import RecordedRequest, Recording
from .replayed import Replayed, Served

QUANTILES = (50, 90, 99)


@dataclass(frozen=True)
class Errors:
    """Errors of a latency's mean and of its 50th, 90th and 99th percentile; fractions, positive: replayed too long."""

    mean: float
    p50: float
    p90: float
    p99: float

    @classmethod
    def of(cls, replayed: NDArray[np.float64], recorded: NDArray[np.float64]) -> Errors:
        """Compare two samples (float64[n], not empty); they need not be in the same order."""
        quantiles = np.percentile(replayed, QUANTILES) / np.percentile(recorded, QUANTILES) - 1
        return cls(float(replayed.mean() / recorded.mean() - 1), *map(float, quantiles))

    @property
    def loss(self) -> float:
        """One number to choose a fit by: mostly the mean, since percentiles of few requests are chancy."""
        return abs(self.mean) + (abs(self.p50) + abs(self.p90) + abs(self.p99)) / 10


@dataclass(frozen=True)
class PartErrors:
    """Errors over some requests of a run."""

    requests: int
    ttft: Errors
    tpot: Errors | None
    """Time per output token: (last − first) / (output tokens − 1); None: no request has more than one."""

    @property
    def loss(self) -> float:
        """One number to choose a fit by."""
        return self.ttft.loss + (0.0 if self.tpot is None else self.tpot.loss)


@dataclass(frozen=True)
class RunErrors:
    """Errors over a whole run."""

    makespan: float
    running: float | None
    """Mean |difference| of the riders over the time series, as a fraction of their mean; None: no time series."""


def part_errors(recorded: Sequence[RecordedRequest], served: Sequence[Served]) -> PartErrors:
    """Compare requests, paired in order, with what the replay made of them."""
    several = [(r, s) for r, s in zip(recorded, served, strict=True) if r.arrival.output_tokens > 1]
    tokens = np.array([r.arrival.output_tokens - 1 for r, _ in several], dtype=np.float64)
    return PartErrors(
        requests=len(recorded),
        ttft=Errors.of(_floats([s.ttft_ns for s in served]), _floats([r.ttft_ns for r in recorded])),
        tpot=Errors.of(
            _floats([s.last_token_ns - s.first_token_ns for _, s in several]) / tokens,
            _floats([r.decode_ns for r, _ in several]) / tokens,
        )
        if several
        else None,
    )


def run_errors(recording: Recording, replayed: Replayed) -> RunErrors:
    """Compare the length of the whole run and who rode when."""
    first = recording.requests[0].arrival.arrived_ns
    makespan_ns = max(request.last_token_ns for request in recording.requests) - first
    return RunErrors(replayed.makespan_ns / makespan_ns - 1, _running_error(recording, replayed))


def _running_error(recording: Recording, replayed: Replayed) -> float | None:
    if not any(tick.running for tick in recording.ticks):
        return None
    at_ns = np.array([tick.at_ns for tick in recording.ticks], dtype=np.int64)
    recorded = np.array([tick.running for tick in recording.ticks], dtype=np.int64)
    steps = replayed.steps
    latest = np.searchsorted(steps.started_ns, at_ns, side="right") - 1
    rides = (latest >= 0) & (at_ns < steps.ended_ns[-1])
    running = np.where(rides, steps.running[latest], 0)
    return float(np.abs(running - recorded).sum() / recorded.sum())


def _floats(values: Sequence[int]) -> NDArray[np.float64]:
    return np.array(values, dtype=np.float64)
