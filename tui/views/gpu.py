"""The view of the GPU page: every device's newest reading, its last minute, and the steps on the roofline."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..numbers import SECOND_NS

if TYPE_CHECKING:
    from ...events import GpuSample
    from ..scene import Scene


@dataclass(frozen=True, slots=True)
class Device:
    """One device or slice: its newest reading, why values are missing, and its busy time and power over the minute."""

    sample: GpuSample
    missing: dict[str, str]
    """Column → reason."""
    util: tuple[float | None, ...]
    """Percent, one value per reading, the newest last."""
    power: tuple[float | None, ...]
    """Watts."""
    old_ns: int
    """How much older than the newest reading of all it is."""


@dataclass(frozen=True, slots=True)
class Roofline:
    """Arithmetic and memory traffic of the window's steps, against the datasheet."""

    flops: int
    bytes: int
    step_ns: int
    peak: tuple[int, int] | None
    """FLOP/s and bytes/s of one GPU, by the datasheet."""
    gpus: int
    series: tuple[tuple[float | None, ...], tuple[float | None, ...]]
    """Compute and bandwidth in use per second, 0…1, the newest last."""


@dataclass(frozen=True, slots=True)
class GpuView:
    """All devices of the engine's host, slices after their device."""

    devices: tuple[Device, ...]
    roofline: Roofline


def gpu_view(scene: Scene) -> GpuView:
    """Sort the readings, and add up the steps."""
    by_uuid: defaultdict[str, list[GpuSample]] = defaultdict(list)
    for sample in scene.gpus:
        by_uuid[sample.gpu_uuid].append(sample)
    newest = max((sample.at_ns for sample in scene.gpus), default=0)
    devices = [_device(samples, newest) for samples in by_uuid.values()]
    devices.sort(key=lambda d: (d.sample.host, d.sample.device, d.sample.parent_uuid is not None, d.sample.gpu_uuid))
    return GpuView(tuple(devices), _roofline(scene))


def _device(samples: Sequence[GpuSample], newest_ns: int) -> Device:
    last = samples[-1]
    util = tuple(None if s.util_pct is None else float(s.util_pct) for s in samples)
    power = tuple(None if s.power_mw is None else s.power_mw / 1000 for s in samples)
    return Device(last, _reasons(last.missing), util, power, newest_ns - last.at_ns)


def _reasons(text: str | None) -> dict[str, str]:
    try:
        found: Any = json.loads(text or "{}")
        return {str(name): str(why) for name, why in dict(found).items()}
    except (ValueError, TypeError):
        return {}


def _roofline(scene: Scene) -> Roofline:
    s, run, peak = scene.snapshot, scene.fold.run, scene.peak
    seconds = scene.fold.window(s.now_ns - s.wall_ns, s.now_ns)
    last = s.now_ns // SECOND_NS
    compute: list[float | None] = []
    bandwidth: list[float | None] = []
    for number in range(last - 60, last):
        second = scene.fold.seconds.get(number)
        compute.append(second.flops / (peak[0] * run.gpus) if peak and second and second.flops_ns else None)
        bandwidth.append(second.bytes / (peak[1] * run.gpus) if peak and second and second.bytes_ns else None)
    return Roofline(
        flops=sum(second.flops for second in seconds),
        bytes=sum(second.bytes for second in seconds),
        step_ns=sum(second.flops_ns for second in seconds),
        peak=peak,
        gpus=run.gpus,
        series=(tuple(compute), tuple(bandwidth)),
    )
