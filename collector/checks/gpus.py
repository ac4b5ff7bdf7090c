"""Whether NVIDIA's driver tells of the GPUs."""

from __future__ import annotations

from ...events import GpuSample
from ..nvml.reasons import missing
from ..nvml.watch import GpuWatch, main_reason, reasons_of
from .check import Check

_NONE_HERE = frozenset(missing(code).why for code in ("LIBRARY_NOT_FOUND", "GPU_NOT_FOUND", "DRIVER_NOT_LOADED"))


def check_gpus(watch: GpuWatch, at_ns: int) -> list[Check]:
    """NVML itself, then every device; a host without a driver may well be meant to have none."""
    poll = watch.poll(at_ns)
    if poll.state == "down":
        level = "note" if poll.why in _NONE_HERE else "bad"
        return [Check("NVML", level, f"GPUs cannot be read: {poll.why}")]
    devices = [sample for sample in poll.samples if sample.parent_uuid is None]
    slices = len(poll.samples) - len(devices)
    pieces = f" and {slices} MIG slices" if slices else ""
    head = Check("NVML", "ok", f"driver {watch.driver() or 'n/a'}, {len(devices)} GPUs{pieces}")
    unnamed = [Check(f"GPU {number}", "bad", why.why) for number, why in sorted(watch.unnamed.items())]
    return [head, *unnamed, *(_device(sample) for sample in poll.samples)]


def _device(sample: GpuSample) -> Check:
    name = f"GPU {sample.device}" if sample.parent_uuid is None else f"GPU {sample.device} slice"
    what = f"{sample.name or 'n/a'} ({sample.gpu_uuid})"
    if sample.state != "ok":
        return Check(name, "bad", f"{what} is {sample.state}: {main_reason(sample)}")
    if sample.parent_uuid is not None:
        return Check(name, "ok", what)
    absent = [f"{column} {why}" for column, why in reasons_of(sample).items() if column != "power_scope"]
    return Check(name, "note" if absent else "ok", "; ".join([what, *absent]))
