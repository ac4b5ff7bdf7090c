"""The constants of a GPU as one vector, and what is believed of each before anything was measured."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..kernels import Kernels
from .timings import Floats


class Belief(NamedTuple):
    """How far a constant may lie from where the fit starts: one standard deviation, of its logarithm unless linear."""

    width: float
    linear: bool = False


BELIEFS = {
    "matrices.launch_us": Belief(0.6),
    "matrices.bandwidth": Belief(0.25),
    "matrices.compute": Belief(0.4),
    "matrices.blend": Belief(0.5),
    "matrices.growth": Belief(0.06, linear=True),
    "matrices.single_us": Belief(2.0),
    "decode.launch_us": Belief(0.5),
    "decode.doubling_us": Belief(0.7),
    "decode.bandwidth": Belief(0.25),
    "decode.setup_tokens": Belief(1.0),
    "decode.cache_speed": Belief(0.7),
    "decode.cache_mb": Belief(0.5),
    "prefill.launch_us": Belief(0.5),
    "prefill.compute": Belief(0.4),
    "prefill.tile_tokens": Belief(0.7),
    "prefill.traffic": Belief(0.5),
    "reduce.one_us": Belief(0.5),
    "reduce.two_us": Belief(0.5),
    "reduce.gbps": Belief(1.2),
    "reduce.ring_us": Belief(0.7),
    "reduce.ring_gbps": Belief(1.2),
    "step_us": Belief(1.5),
}
"""`reduce.limit_mb` is missing: a threshold is tried, not fitted."""
ALIKE = 0.05
"""Both weight formats read the same memory: so near are their shares of its bandwidth."""


class Parameters(NamedTuple):
    """Names and starting values of the constants to fit; each name as in `constants.toml`."""

    names: tuple[str, ...]
    start: Floats
    """As the fit moves them: logarithms, unless linear (float64[names])."""
    widths: Floats

    @classmethod
    def of(cls, kernels: Kernels, formats: set[str], with_host: bool) -> Parameters:
        """The constants that steps in these weight formats may say something about; bf16 always, for the head."""
        names = [f"matrices.{weights}.{rate}" for weights in sorted(formats | {"bf16"}) for rate in _rates("matrices")]
        names += [f"{part}.{rate}" for part in ("decode", "prefill", "reduce") for rate in _rates(part)]
        names += ["step_us"] if with_host else []
        start = [_moved(name, value_of(kernels, name)) for name in names]
        return cls(tuple(names), np.array(start), np.array([belief_of(name).width for name in names]))

    def kernels(self, vector: Floats, base: Kernels) -> Kernels:
        """`base` with these constants at `vector` (float64[names])."""
        found = dict(zip(self.names, (float(v) for v in vector), strict=True))
        matrices = dict(base.matrices)
        for name in {name.split(".")[1] for name in self.names if name.startswith("matrices.")}:
            matrices[name] = replace(base.rates(name), **_of_part(f"matrices.{name}", found))
        return Kernels(
            matrices,
            replace(base.decode, **_of_part("decode", found)),
            replace(base.prefill, **_of_part("prefill", found)),
            replace(base.reduce, **_of_part("reduce", found)),
            float(np.exp(found["step_us"])) if "step_us" in found else base.step_us,
        )

    def disbelief(self, vector: Floats) -> Floats:
        """How far each constant is from where it is believed to be, in standard deviations."""
        distance = (vector - self.start) / self.widths
        bandwidths = [vector[i] for i, name in enumerate(self.names) if _is_bandwidth(name)]
        return np.append(distance, [(other - bandwidths[0]) / ALIKE for other in bandwidths[1:]])


def belief_of(name: str) -> Belief:
    """What is believed of a constant."""
    if name.startswith("matrices."):
        name = f"matrices.{name.split('.')[2]}"
    return BELIEFS[name]


def value_of(kernels: Kernels, name: str) -> float:
    """A constant by its name."""
    part, *rest = name.split(".")
    if part == "step_us":
        return kernels.step_us
    rates = kernels.rates(rest[0]) if part == "matrices" else getattr(kernels, part)
    return getattr(rates, rest[-1])


def _moved(name: str, value: float) -> float:
    return value if belief_of(name).linear else float(np.log(max(value, 1e-3)))


def _of_part(part: str, found: dict[str, float]) -> dict[str, float]:
    ours = {name.removeprefix(f"{part}."): value for name, value in found.items() if name.startswith(f"{part}.")}
    return {name: value if belief_of(f"{part}.{name}").linear else float(np.exp(value)) for name, value in ours.items()}


def _rates(part: str) -> list[str]:
    return [name.removeprefix(f"{part}.") for name in BELIEFS if name.startswith(f"{part}.")]


def _is_bandwidth(name: str) -> bool:
    return name.startswith("matrices.") and name.endswith(".bandwidth")
