"""A watch over all GPUs of a host: who is there, who is lost, and when to try again."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import NamedTuple

from ...events import GpuSample, SourceStanding
from ..backoff import Backoff
from .device import Device, look_at
from .library import Handle, Memory, Nvml
from .reasons import Missing, missing

RELIST_NS = 60_000_000_000
"""How often the driver is asked which devices and slices there are."""


class Poll(NamedTuple):
    """What one look at all GPUs found; `why` says what is wrong and what to do, None: nothing is."""

    samples: list[GpuSample]
    state: SourceStanding
    why: str | None


class GpuWatch:
    """Looks at all GPUs again and again; devices that were seen once stay listed.

    `host_memory` gives what unified devices share. While the driver fails, or a device is lost, NVML is started anew
    from time to time.
    """

    def __init__(self, host: str | None = None, host_memory: Callable[[], Memory | None] = lambda: None) -> None:
        self.host = host or socket.gethostname()
        self._host_memory = host_memory
        self._nvml = Nvml()
        self._devices: dict[str, Device] = {}
        self.unnamed: dict[int, Missing] = {}
        """Devices that the driver counts but does not name, by number."""
        self._listed_ns: int | None = None
        self._down: str | None = None
        self._backoff = Backoff()

    def poll(self, at_ns: int) -> Poll:
        """Look at every device; `at_ns` (UTC ns) comes from a clock that is never set back."""
        down = self._open(at_ns)
        if down is not None:
            return Poll([], "down", down)
        of_host = self._host_memory()
        samples = [look_at(self._nvml, device, self.host, at_ns, of_host) for device in self._in_order()]
        broken = self._broken(samples)
        if broken is not None:
            self._fail(at_ns, broken)
            return Poll([], "down", broken)
        self._retry_lost(at_ns, samples)
        return Poll(samples, *self._standing(samples))

    def driver(self) -> str | None:
        """The driver's version, while NVML can be used."""
        found = self._nvml.driver()
        return None if isinstance(found, Missing) else found

    def close(self) -> None:
        """Let go of NVML."""
        if self._listed_ns is not None:
            self._nvml.stop()
            self._listed_ns = None

    def _open(self, at_ns: int) -> str | None:
        """Have a session with a list of devices that is not old; why not."""
        if self._listed_ns is not None:
            if at_ns - self._listed_ns < RELIST_NS:
                return None
        elif not self._backoff.is_due(at_ns):
            return self._down
        else:
            failed = self._nvml.start()
            if failed is not None:
                return self._fail(at_ns, failed.why)
        return self._list(at_ns)

    def _list(self, at_ns: int) -> str | None:
        count = self._nvml.count()
        if isinstance(count, Missing):
            return self._fail(at_ns, count.why)
        if count == 0 and not self._devices:
            return self._fail(at_ns, missing("GPU_NOT_FOUND").why)
        self.unnamed = {}
        for device in self._devices.values():
            device.handle, device.gone = None, None
        for number in range(count):
            self._add_device(number)
        self._forget_slices()
        self._listed_ns = at_ns
        return None

    def _add_device(self, number: int) -> None:
        handle = self._nvml.device(number)
        uuid = handle if isinstance(handle, Missing) else self._nvml.uuid(handle)
        if isinstance(uuid, Missing):
            self._miss(number, uuid)
            return
        device = self._add(number, uuid, handle, None)
        for one in self._nvml.slices(handle) or ():
            slice_uuid = self._nvml.uuid(one)
            if not isinstance(slice_uuid, Missing):
                self._add(number, slice_uuid, one, device.uuid)

    def _add(self, number: int, uuid: str, handle: Handle, parent_uuid: str | None) -> Device:
        name = self._nvml.name(handle)
        known = self._devices.get(uuid)
        if known is None:
            known = self._devices[uuid] = Device(number, uuid, "", parent_uuid)
        known.number, known.handle = number, handle
        known.name = known.name if isinstance(name, Missing) else name
        return known

    def _miss(self, number: int, why: Missing) -> None:
        """Note a device that cannot be named: one that was known under this number, or a number alone."""
        for device in self._devices.values():
            if device.number == number and device.parent_uuid is None and device.handle is None:
                device.gone = why
                return
        self.unnamed[number] = why

    def _forget_slices(self) -> None:
        """Slices come and go as people cut devices up; a slice of a device that is there, but is not itself, ended."""
        present = {uuid for uuid, device in self._devices.items() if device.handle is not None}
        self._devices = {
            uuid: device
            for uuid, device in self._devices.items()
            if uuid in present or device.parent_uuid not in present
        }

    def _in_order(self) -> list[Device]:
        return sorted(self._devices.values(), key=lambda device: (device.number, device.parent_uuid or ""))

    @staticmethod
    def _broken(samples: list[GpuSample]) -> str | None:
        """Why the driver itself fails: no device answers, and not because they are lost."""
        if any(sample.state == "ok" for sample in samples):
            return None
        return next((main_reason(sample) for sample in samples if sample.state == "unavailable"), None)

    def _fail(self, at_ns: int, why: str) -> str:
        self.close()
        for device in self._devices.values():
            device.energy.pause()
        self._down = why
        self._backoff.failed(at_ns)
        return why

    def _retry_lost(self, at_ns: int, samples: list[GpuSample]) -> None:
        """Start NVML anew before the next look while devices are lost: they come back only then."""
        if all(sample.state == "ok" for sample in samples):
            self._backoff.worked()
        elif self._backoff.is_due(at_ns):
            self._backoff.failed(at_ns)
            self._nvml.stop()
            failed = self._nvml.start()
            if failed is not None:
                self._listed_ns, self._down = None, failed.why
            else:
                self._listed_ns = at_ns - RELIST_NS

    def _standing(self, samples: list[GpuSample]) -> tuple[SourceStanding, str | None]:
        troubles = [f"GPU {number}: {why.why}" for number, why in sorted(self.unnamed.items())]
        for sample in samples:
            trouble = main_reason(sample) if sample.state != "ok" else _denied(sample)
            if trouble is not None:
                troubles.append(f"GPU {sample.device} ({sample.gpu_uuid}): {trouble}")
        return ("degraded", "; ".join(troubles)) if troubles else ("up", None)


def reasons_of(sample: GpuSample) -> dict[str, str]:
    """What of a sample could not be read, and why."""
    return json.loads(sample.missing or "{}")


def main_reason(sample: GpuSample) -> str:
    """Why a device that is not ok is not."""
    return next(iter(reasons_of(sample).values()), sample.state)


def _denied(sample: GpuSample) -> str | None:
    """What of a device this process may not read."""
    why = missing("NO_PERMISSION").why
    columns = [column for column, reason in reasons_of(sample).items() if reason == why]
    return f"{', '.join(columns)} {why}" if columns else None
