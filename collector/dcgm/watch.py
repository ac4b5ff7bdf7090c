"""A watch over the devices of a DCGM exporter: each page becomes a sample per device and slice."""

from __future__ import annotations

from typing import NamedTuple

from ...events import GpuSample
from ..nvml.device import OF_DEVICE, Device, as_text, blank
from ..nvml.reasons import Missing, missing
from ..nvml.watch import Poll, main_reason
from ..scrape.page import Page
from .devices import Exported, devices_of

MIB = 2**20
_BLANK = 2**31 - 16
_BLANK_COUNTER = 2**47
"""DCGM has numbers that stand for no value (dcgm_structs.h), from here on; the rest of them is larger."""
_FORGOTTEN = Missing(
    "UNLISTED", "the exporter's page does not list it any more: GPU lost, or the exporter lost sight of it"
)
_SCOPE = "DCGM does not say whether this is an average or an instant reading"
_USED, _FREE, _RESERVED = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_RESERVED"
_ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"


class Unit(NamedTuple):
    """A column, the families that tell it (the first on the page counts), and how much a unit of theirs is."""

    column: str
    families: tuple[str, ...]
    factor: int = 1


UTIL = Unit("util_pct", ("DCGM_FI_DEV_GPU_UTIL",))
ACTIVE = Unit("active_ppm", (_ACTIVE,), 1_000_000)
POWER = Unit("power_mw", ("DCGM_FI_DEV_POWER_USAGE",), 1000)
LIMIT = Unit("power_limit_mw", ("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "DCGM_FI_DEV_POWER_MGMT_LIMIT"), 1000)
ENERGY = Unit("energy_mj", ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",))
CLOCK = Unit("sm_clock_mhz", ("DCGM_FI_DEV_SM_CLOCK",))
TEMPERATURE = Unit("temperature_c", ("DCGM_FI_DEV_GPU_TEMP",))
MEM_USED = Unit("mem_used", (_USED,), MIB)
MEM_TOTAL = Unit("mem_total", ("DCGM_FI_DEV_FB_TOTAL",), MIB)


class DcgmWatch:
    """Turns one exporter's pages into samples; devices that were seen once stay listed.

    `host` is the host of devices whose series do not name theirs, or of all, where `is_host_given`.
    """

    def __init__(self, host: str, *, is_host_given: bool = False) -> None:
        self._host = host
        self._is_host_given = is_host_given
        self._devices: dict[str, Device] = {}
        self._hosts: dict[str, str] = {}
        self._counted: dict[str, tuple[int, int | Missing]] = {}

    def see(self, page: Page, at_ns: int) -> Poll:
        """The samples of a page that was read at `at_ns` (UTC ns, never going back)."""
        exported = {one.uuid: one for one in devices_of(page)}
        for uuid in [uuid for uuid, device in self._devices.items() if device.parent_uuid and uuid not in exported]:
            del self._devices[uuid]
        for one in exported.values():
            self._devices.setdefault(one.uuid, Device(one.number, one.uuid, one.name, one.parent_uuid))
            self._hosts[one.uuid] = self._host if self._is_host_given else one.host or self._host
        samples = [
            self._sample(device, exported[uuid], at_ns) if uuid in exported else self._lost(device, at_ns)
            for uuid, device in self._devices.items()
        ]
        told = [_trouble(sample) for sample in samples if sample.state != "ok"]
        told += [_shared(sample) for sample in samples if sample.shared_by]
        is_well = bool(samples) and all(sample.state == "ok" for sample in samples)
        return Poll(
            samples, "up" if is_well else "degraded", "; ".join(told) or (None if samples else "no GPU on the page")
        )

    def pause(self) -> None:
        """No page for a while: what devices drew meanwhile is not made up from readings around it."""
        for device in self._devices.values():
            device.energy.pause()

    def _lost(self, device: Device, at_ns: int) -> GpuSample:
        return blank(device, self._hosts[device.uuid], at_ns, "lost", _FORGOTTEN)

    def _sample(self, device: Device, one: Exported, at_ns: int) -> GpuSample:
        look = {unit.column: _value(one, unit) for unit in (UTIL, ACTIVE, MEM_USED)}
        look["mem_total"] = _total(one, look["mem_used"])
        if isinstance(look["util_pct"], Missing) and isinstance(active := look["active_ppm"], int):
            look["util_pct"] = round(active / 10_000)
        if device.parent_uuid is None:
            look |= {unit.column: _value(one, unit) for unit in (POWER, LIMIT, CLOCK, TEMPERATURE)}
            look["energy_mj"] = self._energy(device, _value(one, ENERGY), look["power_mw"], at_ns)
        else:
            look |= dict.fromkeys(OF_DEVICE, missing("SLICE"))
        known = {column: value for column, value in look.items() if not isinstance(value, Missing)}
        reasons = {column: value.why for column, value in look.items() if isinstance(value, Missing)}
        if "power_mw" in known:
            reasons["power_scope"] = _SCOPE
        return blank(device, self._hosts[device.uuid], at_ns, "ok" if known else "unavailable", _FORGOTTEN)._replace(
            mem_kind="own" if "mem_used" in known else None,
            energy_basis=device.energy.basis if "energy_mj" in known else None,
            shared_by=tuple(sorted(one.sharers)) if len(one.sharers) > 1 else None,
            missing=as_text(reasons),
            **known,
        )

    def _energy(self, device: Device, counter: int | Missing, power: int | Missing, at_ns: int) -> int | Missing:
        """A counter that stands still is a page that the exporter has not renewed: the device drew power all the same.

        How much can have been drawn is bounded without the power limit, as a renewal may bring more time than passed.
        """
        if isinstance(counter, Missing):
            return device.energy.add(at_ns, counter, power, None)
        before = self._counted.get(device.uuid)
        if before is None or before[0] != counter:
            before = self._counted[device.uuid] = (counter, device.energy.add(at_ns, counter, power, None))
        return before[1]


def _value(one: Exported, unit: Unit) -> int | Missing:
    """A column's value; what is only a device's is read from series of its slices too, which repeat it."""
    for family in unit.families:
        values = one.values.get(family) or (one.of_slices.get(family) if unit.column in OF_DEVICE else None)
        if values:
            return _one(family, values, unit)
    return Missing("NOT_SUPPORTED", f"the page has no {unit.families[0]}: add it to the exporter's fields")


def _one(family: str, values: set[float | None], unit: Unit) -> int | Missing:
    if len(values) > 1:
        return Missing("UNREADABLE", f"{family} has several values for one device")
    [value] = values
    most = _BLANK_COUNTER if unit.column == "energy_mj" else _BLANK
    if value is None or not 0 <= value < most:
        return Missing("NOT_SUPPORTED", "DCGM has no value: not supported by this device, or not permitted")
    return round(value * unit.factor)


def _total(one: Exported, used: int | Missing) -> int | Missing:
    """A device's memory: told, or what is used, free and reserved."""
    told = _value(one, MEM_TOTAL)
    free = _value(one, Unit("mem_total", (_FREE,), MIB))
    if not isinstance(told, Missing) or isinstance(used, Missing) or isinstance(free, Missing):
        return told
    reserved = _value(one, Unit("mem_total", (_RESERVED,), MIB))
    return used + free + (0 if isinstance(reserved, Missing) else reserved)


def _trouble(sample: GpuSample) -> str:
    return f"GPU {sample.device} ({sample.gpu_uuid}): {main_reason(sample)}"


def _shared(sample: GpuSample) -> str:
    return (
        f"GPU {sample.device} ({sample.gpu_uuid}) is shared by {', '.join(sample.shared_by or ())}:"
        " what the page tells of each is a device-level value, counted once"
    )
