"""The host's processors and memory."""

from __future__ import annotations

import psutil

from ..events import HostSample
from .nvml.library import Memory


def host_memory() -> Memory:
    """Memory in use and in all, in bytes; what can be given back at once counts as free."""
    found = psutil.virtual_memory()
    return Memory(found.total - found.available, found.total)


class HostMeter:
    """Looks at a host again and again; the first look knows no processor load, which is measured between two."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._cpus = psutil.cpu_count() or 1
        self._is_first = True

    def look(self, at_ns: int) -> HostSample:
        """The load since the look before, and the memory now."""
        percent = psutil.cpu_percent()
        load = None if self._is_first else round(10 * percent)
        self._is_first = False
        memory = host_memory()
        return HostSample(self._host, at_ns, self._cpus, load, memory.used, memory.total)
