"""The one place from which NVML is called: a value, or why there is none; never an exception."""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any, NamedTuple

from .reasons import UNANSWERED, Missing, missing

Handle = Any
"""A device or a MIG slice, as the binding hands it out."""
_ERROR = "NVML_ERROR_"
_VALUE_FIELDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
"""The member of a field's union by its value type."""
_POWER_FIELDS = {
    "average": ("NVML_FI_DEV_POWER_AVERAGE", "NVML_POWER_SCOPE_GPU"),
    "instant": ("NVML_FI_DEV_POWER_INSTANT", "NVML_POWER_SCOPE_GPU"),
    "module": ("NVML_FI_DEV_POWER_AVERAGE", "NVML_POWER_SCOPE_MODULE"),
}


class Memory(NamedTuple):
    """Memory of a device, in bytes."""

    used: int
    total: int


class Nvml:
    """One session with NVIDIA's driver."""

    def __init__(self) -> None:
        self._binding: Any = None
        self._codes: dict[int, str] = {}
        self._mismatch: type[Exception] = NotImplementedError

    def start(self) -> Missing | None:
        """Open the session; what is wrong when it cannot be."""
        try:
            self._binding = import_module("pynvml")
        except ImportError:
            return missing("BINDING_NOT_FOUND")
        self._codes = _error_names(self._binding)
        self._mismatch = getattr(self._binding, "NVMLLibraryMismatchError", self._mismatch)
        failed = self._call("nvmlInit")
        return failed if isinstance(failed, Missing) else None

    def stop(self) -> None:
        """Close the session, whatever state it is in."""
        self._call("nvmlShutdown")

    def driver(self) -> str | Missing:
        """The driver's version."""
        return self._text("nvmlSystemGetDriverVersion")

    def count(self) -> int | Missing:
        """How many devices the driver lists."""
        return self._call("nvmlDeviceGetCount")

    def device(self, number: int) -> Handle | Missing:
        """The device of a number."""
        return self._call("nvmlDeviceGetHandleByIndex", number)

    def uuid(self, handle: Handle) -> str | Missing:
        """What identifies a device or a slice for good."""
        return self._text("nvmlDeviceGetUUID", handle)

    def name(self, handle: Handle) -> str | Missing:
        """The product's name."""
        return self._text("nvmlDeviceGetName", handle)

    def slices(self, handle: Handle) -> list[Handle] | None:
        """The MIG slices of a device; None: it is not in MIG mode."""
        mode = self._call("nvmlDeviceGetMigMode", handle)
        if isinstance(mode, Missing) or not mode[0]:
            return None
        most = self._call("nvmlDeviceGetMaxMigDeviceCount", handle)
        places = range(0 if isinstance(most, Missing) else most)
        found = (self._call("nvmlDeviceGetMigDeviceHandleByIndex", handle, place) for place in places)
        return [one for one in found if not isinstance(one, Missing)]

    def utilization(self, handle: Handle) -> int | Missing:
        """Part of the driver's sample period in which some kernel ran, in %."""
        found = self._call("nvmlDeviceGetUtilizationRates", handle)
        return found if isinstance(found, Missing) else found.gpu

    def memory(self, handle: Handle) -> Memory | Missing:
        """Memory used by programs and in all; the driver's own reserve is in neither `used` nor free."""
        found = self._call("nvmlDeviceGetMemoryInfo", handle, version=getattr(self._binding, "nvmlMemory_v2", None))
        if isinstance(found, Missing) and (found.code in UNANSWERED or found.code == "ARGUMENT_VERSION_MISMATCH"):
            found = self._call("nvmlDeviceGetMemoryInfo", handle)
        if isinstance(found, Missing):
            return found
        return Memory(found.used, found.total) if found.total else missing("NOT_SUPPORTED")

    def power(self, handle: Handle, scope: str | None) -> int | Missing:
        """Power in mW: of a named scope (average, instant, module), or what the driver gives without naming it."""
        if scope is None:
            return self._call("nvmlDeviceGetPowerUsage", handle)
        field: tuple[Any, ...] = tuple(getattr(self._binding, name, None) for name in _POWER_FIELDS[scope])
        if None in field:
            return missing("FUNCTION_NOT_FOUND")
        found = self._call("nvmlDeviceGetFieldValues", handle, [field])
        return found if isinstance(found, Missing) else self._field(found[0])

    def power_limit(self, handle: Handle) -> int | Missing:
        """The power limit that is enforced, in mW."""
        return self._call("nvmlDeviceGetEnforcedPowerLimit", handle)

    def energy(self, handle: Handle) -> int | Missing:
        """The energy counter, in mJ since the driver was loaded."""
        return self._call("nvmlDeviceGetTotalEnergyConsumption", handle)

    def sm_clock(self, handle: Handle) -> int | Missing:
        """Clock of the multiprocessors, in MHz."""
        return self._call("nvmlDeviceGetClockInfo", handle, getattr(self._binding, "NVML_CLOCK_SM", 1))

    def temperature(self, handle: Handle) -> int | Missing:
        """Temperature of the chip, in °C."""
        return self._call("nvmlDeviceGetTemperature", handle, getattr(self._binding, "NVML_TEMPERATURE_GPU", 0))

    def _text(self, function: str, *arguments: Any) -> str | Missing:
        """A text, which older bindings give as bytes."""
        found = self._call(function, *arguments)
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else found

    def _field(self, field: Any) -> int | Missing:
        if field.nvmlReturn:
            return missing(self._codes.get(field.nvmlReturn, "UNKNOWN"))
        member = _known_value(field.valueType)
        return missing("UNREADABLE") if member is None else int(getattr(field.value, member))

    def _call(self, function: str, *arguments: Any, **named: Any) -> Any:
        """What a function of the binding answers, or Missing."""
        call = getattr(self._binding, function, None)
        if call is None:
            return missing("FUNCTION_NOT_FOUND")
        try:
            return call(*arguments, **named)
        except self._binding.NVMLError as error:
            return missing(self._codes.get(error.value, "UNKNOWN"))
        except self._mismatch:
            return missing("FUNCTION_NOT_FOUND")
        except (ValueError, ctypes.ArgumentError):
            return missing("UNREADABLE")


def _error_names(binding: Any) -> dict[int, str]:
    """NVML's error codes by number, without their common beginning."""
    return {getattr(binding, name): name.removeprefix(_ERROR) for name in dir(binding) if name.startswith(_ERROR)}


def _known_value(kind: int) -> str | None:
    """The member of a field's union that holds a value of that type."""
    return _VALUE_FIELDS[kind] if 0 <= kind < len(_VALUE_FIELDS) else None
