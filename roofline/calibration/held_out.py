"""How well fitted constants predict steps that the fit has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple
from zlib import crc32

import numpy as np

from ..constants import Constants, Origin
from ..kernels import Kernels
from ..prediction import kernel_times
from .fit import fit
from .timings import PARTS, Floats, Timing, batches

HoldOut = Literal["quarter", "model", "tp", "batch"]
BATCHES = (8, 64)
"""Borders between the small, middle and large batches that are left out in turn."""


class Error(NamedTuple):
    """Relative errors of predictions for one weight format and phase: mean and 90th percentile of |%|, and the bias."""

    weights: str
    phase: str
    steps: int
    mean: float
    p90: float
    bias: float

    def __str__(self) -> str:
        return f"{self.weights} {self.phase} {self.mean:.1f} %, p90 {self.p90:.1f} %"


def errors(timings: Sequence[Timing], kernels: Kernels) -> list[Error]:
    """How far these constants are off, by weight format and phase."""
    return _summed(_relative(timings, kernels))


def cross_check(timings: Sequence[Timing], by: HoldOut, base: Kernels | None = None) -> list[Error]:
    """Leave a part out, fit the rest, predict the part: a quarter of the steps once, or each model, tp or range of
    batch sizes in turn. Parts whose rest is empty are passed over; no errors at all if there is but one part.

    Where the rest holds no all-reduce at all, nothing could be said about one: its measured time is taken, and steps
    without it are passed over.
    """
    seen: dict[tuple[str, str], list[Floats]] = {}
    for part in _parts(timings, by):
        kept = [timing for timing in timings if not part(timing)]
        left = [timing for timing in timings if part(timing)]
        if kept and left:
            talks = any(timing.replica.tp > 1 for timing in kept)
            left = left if talks else [timing for timing in left if timing.parts or timing.replica.tp == 1]
            for key, off in _relative(left, fit(kept, base).kernels, talks).items():
                seen.setdefault(key, []).extend(off)
    return _summed(seen)


def _parts(timings: Sequence[Timing], by: HoldOut) -> list[Callable[[Timing], bool]]:
    keys = {"quarter": _is_quarter, "model": _model, "tp": _tp, "batch": _batch_range}
    key = keys[by]
    values = {True} if by == "quarter" else {key(timing) for timing in timings}
    return [lambda timing, value=value: key(timing) == value for value in sorted(values)]


def _is_quarter(timing: Timing) -> bool:
    """Every fourth step by its work, the same ones each time."""
    return crc32(repr((timing.replica.model.name, timing.replica.tp, tuple(map(float, timing.work)))).encode()) % 4 == 0


def _model(timing: Timing) -> str:
    return timing.replica.model.name


def _tp(timing: Timing) -> int:
    return timing.replica.tp


def _batch_range(timing: Timing) -> int:
    return sum(timing.work.sampled >= border for border in BATCHES)


def _relative(timings: Sequence[Timing], kernels: Kernels, talks: bool = True) -> dict[tuple[str, str], list[Floats]]:
    constants, found = Constants(kernels, Origin("fit")), dict[tuple[str, str], list[Floats]]()
    for batch in batches(timings):
        times = kernel_times(replace(batch.replica, constants=constants), batch.work)
        if not talks and batch.replica.tp > 1:
            times = times._replace(allreduce=batch.parts[:, PARTS.index("allreduce")])
        off = times.total / batch.measured - 1
        for phase in np.unique(batch.phase).tolist():
            found.setdefault((batch.replica.weights, phase), []).append(off[batch.phase == phase])
    return found


def _summed(found: dict[tuple[str, str], list[Floats]]) -> list[Error]:
    rows: list[Error] = []
    for (weights, phase), parts in sorted(found.items()):
        off = 100 * np.concatenate(parts)
        size = np.abs(off)
        rows.append(
            Error(weights, phase, len(off), float(size.mean()), float(np.quantile(size, 0.9)), float(off.mean()))
        )
    return rows
