"""One device or MIG slice: what is known of it for good, and one look at it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TypeVar

from ...events import GpuSample
from .energy import EnergyMeter
from .library import Handle, Memory, Nvml
from .reasons import LOST, UNANSWERED, USUAL, Missing, missing

Value = TypeVar("Value")
_UNIFIED = ("GB10", "N1X", "Thor", "Orin", "Xavier", "Tegra", "nvgpu")
"""Parts of the names of devices that use the host's memory; no NVML call tells that."""
_SCOPES = ("average", "instant", None, "module")
"""What is asked for power, in this order, until the device answers; the first answer is kept to for good."""
_UNNAMED = "the driver does not say whether this is an average or an instant reading"
OF_DEVICE = ("power_mw", "power_limit_mw", "energy_mj", "sm_clock_mhz", "temperature_c")
"""What only whole devices have; a slice that told them would count them twice."""


@dataclass
class Device:
    """A device or slice that was seen at least once; without a handle the driver lists it no more."""

    number: int
    uuid: str
    name: str
    parent_uuid: str | None
    handle: Handle | None = None
    gone: Missing | None = None
    energy: EnergyMeter = field(default_factory=EnergyMeter)
    scopes: tuple[str | None, ...] = _SCOPES

    @property
    def is_unified(self) -> bool:
        """Whether it uses the host's memory."""
        return any(part in self.name for part in _UNIFIED)


@dataclass
class Look:
    """One look at a device; it collects what could not be read."""

    missing: dict[str, Missing] = field(default_factory=dict[str, Missing])
    answers: int = 0

    def take(self, column: str, found: Value | Missing) -> Value | None:
        """The value, or None with the reason kept."""
        if isinstance(found, Missing):
            self.missing[column] = found
            return None
        self.answers += 1
        return found

    def state(self) -> str:
        """ok; lost: the device is gone; unavailable: nothing can be read, for another reason than the usual ones."""
        if any(one.code in LOST for one in self.missing.values()):
            return "lost"
        return "ok" if self.answers or self.trouble() is None else "unavailable"

    def trouble(self) -> Missing | None:
        """The worst reason of all, if there is one beyond the usual ones."""
        worse = [one for one in self.missing.values() if one.code not in USUAL]
        return min(worse, key=lambda one: one.code not in LOST, default=None)


def look_at(nvml: Nvml, device: Device, host: str, at_ns: int, of_host: Memory | None) -> GpuSample:
    """Read everything that a device tells; `of_host` is the memory that unified devices share."""
    if device.handle is None:
        return blank(device, host, at_ns, "lost", device.gone or missing("UNLISTED"))
    look = Look()
    util = look.take("util_pct", nvml.utilization(device.handle))
    memory, kind = _memory(nvml, device, of_host)
    memory = look.take("mem_used", memory)
    if memory is None:
        look.missing["mem_total"] = look.missing["mem_used"]
    power = scope = limit = energy = clock = temperature = None
    if device.parent_uuid is None:
        drawn, scope = _power(nvml, device)
        power = look.take("power_mw", drawn)
        limit = look.take("power_limit_mw", nvml.power_limit(device.handle))
        clock = look.take("sm_clock_mhz", nvml.sm_clock(device.handle))
        temperature = look.take("temperature_c", nvml.temperature(device.handle))
        counter = nvml.energy(device.handle)
        energy = look.take("energy_mj", device.energy.add(at_ns, counter, drawn, limit))
    else:
        look.missing.update(dict.fromkeys(OF_DEVICE, missing("SLICE")))
    state, trouble = look.state(), look.trouble()
    if state != "ok" and trouble is not None:
        return blank(device, host, at_ns, state, trouble)
    reasons = {column: one.why for column, one in look.missing.items()}
    if power is not None and scope is None:
        reasons["power_scope"] = _UNNAMED
    return GpuSample(
        host, device.uuid, at_ns, device.number, device.name, device.parent_uuid, state, util,
        None if memory is None else memory.used, None if memory is None else memory.total,
        None if memory is None else kind, power, scope, limit, energy, None if energy is None else device.energy.basis,
        clock, temperature, as_text(reasons),
    )  # fmt: skip


def blank(device: Device, host: str, at_ns: int, state: str, reason: Missing) -> GpuSample:
    """A sample of a device that tells nothing."""
    device.energy.pause()
    columns = ("util_pct", "mem_used", "mem_total", *OF_DEVICE)
    return GpuSample(
        host, device.uuid, at_ns, device.number, device.name, device.parent_uuid, state,
        None, None, None, None, None, None, None, None, None, None, None,
        as_text(dict.fromkeys(columns, reason.why)),
    )  # fmt: skip


def as_text(reasons: dict[str, str]) -> str | None:
    """Reasons as the column `missing` keeps them."""
    return json.dumps(reasons, ensure_ascii=False, sort_keys=True) if reasons else None


def _memory(nvml: Nvml, device: Device, of_host: Memory | None) -> tuple[Memory | Missing, str]:
    """A device's memory and whose it is; used and total always of the same pool."""
    found = nvml.memory(device.handle)
    if isinstance(found, Missing) and found.code in UNANSWERED and device.is_unified and of_host is not None:
        return of_host, "unified"
    return found, "own"


def _power(nvml: Nvml, device: Device) -> tuple[int | Missing, str | None]:
    """Power in mW and its scope: always the same one, once the device has answered."""
    found: int | Missing = missing("NOT_SUPPORTED")
    for place, scope in enumerate(device.scopes):
        found = nvml.power(device.handle, scope)
        if not isinstance(found, Missing):
            device.scopes = (scope,)
            return found, scope
        if found.code not in UNANSWERED | {"INVALID_ARGUMENT"}:
            device.scopes = device.scopes[place:]
            break
    return found, None
