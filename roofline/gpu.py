"""GPU specs: datasheet peaks. What real kernels reach of them is in `constants`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from .naming import find


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU type: memory in bytes, bandwidth in bytes/s, dense peaks in FLOP/s, power in W."""

    name: str
    label: str
    memory: int
    bandwidth: float
    bf16_flops: float
    fp8_flops: float
    int8_flops: float
    tdp_w: int
    source: str

    def peak_flops(self, weights: str) -> float:
        """Dense peak for matrix products with these weights: fp8 and int8 have own rates, int4 computes in bf16."""
        return {"fp8": self.fp8_flops, "int8": self.int8_flops}.get(weights, self.bf16_flops)


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
    return {name: spec["aliases"] for name, spec in _document().items()}


@cache
def _catalogue() -> dict[str, Gpu]:
    return {name: _gpu(name, spec) for name, spec in _document().items()}


def _gpu(name: str, spec: dict[str, Any]) -> Gpu:
    return Gpu(
        name=name,
        label=spec["label"],
        memory=int(spec["memory_gb"] * 10**9),
        bandwidth=spec["bandwidth_tbps"] * 1e12,
        bf16_flops=spec["bf16_tflops"] * 1e12,
        fp8_flops=spec.get("fp8_tflops", spec["bf16_tflops"]) * 1e12,
        int8_flops=spec.get("int8_tops", spec["bf16_tflops"]) * 1e12,
        tdp_w=spec["tdp_w"],
        source=spec["source"],
    )
