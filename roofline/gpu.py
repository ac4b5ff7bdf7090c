"""GPU specs: datasheet peaks, and how much of them real kernels reach."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from .naming import find


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Achieved share of the datasheet peaks, and fixed costs; fitted per GPU and weight format.

    `bandwidth`, `compute`, `kv_bandwidth` and `attention` are shares of the peaks; `layer_us` is µs per layer and step;
    `allreduce_us` is the latency of one all-reduce, `allreduce_gbps` its bus bandwidth in GB/s.
    """

    bandwidth: float
    compute: float
    kv_bandwidth: float
    attention: float
    layer_us: float
    allreduce_us: float
    allreduce_gbps: float


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU type: memory in bytes, bandwidth in bytes/s, dense peaks in FLOP/s, power in W."""

    name: str
    label: str
    memory: int
    bandwidth: float
    bf16_flops: float
    fp8_flops: float
    tdp_w: int
    source: str
    efficiency: dict[str, Efficiency]
    efficiency_source: str

    def peak_flops(self, weights: str) -> float:
        """Dense peak for matrix products with these weights: fp8 has its own rate, all others compute in bf16."""
        return self.fp8_flops if weights == "fp8" else self.bf16_flops

    def efficiency_for(self, weights: str) -> Efficiency:
        """The fitted efficiencies for a weight format; formats without a fit of their own take the bf16 one."""
        return self.efficiency.get(weights, self.efficiency["bf16"])


def gpu(name: str) -> Gpu:
    """The GPU called `name` in any usual spelling (`h100`, `H100_SXM`, `NVIDIA H100 80GB HBM3`); else a `SpecError`."""
    return find("GPU", name, _catalogue(), _aliases())


def gpu_names() -> list[str]:
    """Canonical names of all known GPUs."""
    return list(_catalogue())


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(files("farebox.roofline").joinpath("gpus.toml").read_text("utf-8"))


@cache
def _aliases() -> dict[str, list[str]]:
    return {name: spec["aliases"] for name, spec in _document()["gpu"].items()}


@cache
def _catalogue() -> dict[str, Gpu]:
    document = _document()
    return {name: _gpu(name, spec, document["generic"]) for name, spec in document["gpu"].items()}


def _gpu(name: str, spec: dict[str, Any], generic: dict[str, Any]) -> Gpu:
    fitted: dict[str, dict[str, float]] = spec.get("efficiency") or {"bf16": generic["efficiency"]}
    return Gpu(
        name=name,
        label=spec["label"],
        memory=int(spec["memory_gb"] * 10**9),
        bandwidth=spec["bandwidth_tbps"] * 1e12,
        bf16_flops=spec["bf16_tflops"] * 1e12,
        fp8_flops=spec.get("fp8_tflops", spec["bf16_tflops"]) * 1e12,
        tdp_w=spec["tdp_w"],
        source=spec["source"],
        efficiency={weights: Efficiency(**values) for weights, values in fitted.items()},
        efficiency_source=spec.get("efficiency_source", generic["source"]),
    )
