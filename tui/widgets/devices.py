"""The list of devices: busy time, memory, power, clock, temperature, state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.reactive import reactive

from .. import numbers
from ..glyphs import pad
from ..line import Line, Role
from ..numbers import SECOND_NS, share
from .bar import bar
from .listing import Listing
from .timeline import timeline

if TYPE_CHECKING:
    from ...events import GpuSample
    from ..views.gpu import Device, GpuView

NAME = 28
BAR = 10
POWER, POWER_BRIEF = 17, 11
WITH_BARS, WITH_NAMES = 104, 118
"""Columns from which bars and whole names fit; clock, temperature and state never make way."""
TREND = 12
GIB = 1 << 30
STALE_NS = 10 * SECOND_NS


class Devices(Listing):
    """One line per device or slice; the one under the cursor says why values are missing."""

    view: reactive[GpuView | None] = reactive(None, repaint=False)

    def watch_view(self) -> None:
        """Draw the new readings."""
        self.redraw()

    def count(self) -> int:
        """Devices and slices."""
        return len(self.view.devices) if self.view else 0

    def empty(self) -> str:
        """Why there is none."""
        return (
            "no reading of a GPU in this store: farebox gpu --watch STORE records them beside the engine"
            if self.view
            else ""
        )

    def head(self, width: int) -> list[Line]:
        """The titles."""
        cells, power = _cells(width), _power_room(width)
        busy, memory = ("busy time", "memory reserved") if cells else ("busy", "memory")
        titles = f"{busy:<{cells + 7}}{memory:<{cells + 14}}{'power':<{power}}{'clock':>9}{'temp':>7}  state"
        return [[(pad("device", self._name_room(width)), "label"), (titles, "label")]]

    def row(self, index: int, width: int) -> Line:
        """One device."""
        if self.view is None:
            return []
        device = self.view.devices[index]
        line: Line = [
            *self._who(device, self._name_room(width)),
            *self._busy(device, _cells(width)),
            *self._memory(device, _cells(width)),
            *self._power(device, _power_room(width)),
            *self._value(device, "sm_clock_mhz", " MHz", 9),
            *self._value(device, "temperature_c", " °C", 7),
            ("  ", ""),
            *self._state(device),
        ]
        room = width - sum(len(text) for text, _ in line) - 2
        if room >= TREND:
            line.append(("  " + timeline(device.util, room, 1, 100, self.glyphs)[0], "label"))
        return self.spelled([line])[0]

    def foot(self, width: int) -> list[Line]:
        """What is special about the device under the cursor: who shares it, and why values are missing."""
        if not self.view or not self.view.devices:
            return []
        device = self.view.devices[min(self.cursor, self.count() - 1)]
        told: list[str] = []
        if sharers := device.sample.shared_by:
            told.append(f"shared by {', '.join(sharers)}: all values are the whole device's")
        if device.missing:
            told.append("n/a: " + "; ".join(f"{name}: {why}" for name, why in device.missing.items()))
        return [[(self.glyphs.fit(text, width), "label")] for text in told]

    def copied(self, index: int) -> str:
        """What people look for: the device's uuid and name."""
        sample = self.view.devices[index].sample if self.view else None
        return f"{sample.gpu_uuid} {sample.name}" if sample else ""

    def _name_room(self, width: int) -> int:
        return 16 if width < WITH_NAMES else NAME

    def _who(self, device: Device, room: int) -> Line:
        sample = device.sample
        if sample.parent_uuid is not None:
            return [(pad("  " + self.glyphs.fit(f"slice {sample.gpu_uuid}", room - 3), room), "label")]
        return [(pad(self.glyphs.fit(f"{sample.device} {sample.name}", room - 1), room), "strong")]

    def _busy(self, device: Device, cells: int) -> Line:
        found = _busy(device.sample)
        if found is None:
            return [(pad("n/a", cells + 7), "label")]
        filled, empty = bar(found[0], cells, self.glyphs)
        return [(filled, "decode"), (empty, "faint"), (f"{found[1]:>4} %", "strong"), (" ", "")]

    def _memory(self, device: Device, cells: int) -> Line:
        used, total = device.sample.mem_used, device.sample.mem_total
        part = share(used, total) if used is not None and total else None
        if used is None or total is None or part is None:
            return [(pad("n/a", cells + 14), "label")]
        filled, empty = bar(part, cells, self.glyphs)
        told = f" {used / GIB:.0f}/{total / GIB:.0f} GiB"
        return [(filled, "label"), (empty, "faint"), (pad(told, 14), "")]

    def _power(self, device: Device, room: int) -> Line:
        sample = device.sample
        if sample.power_mw is None:
            return [(pad("n/a", room), "label")]
        limit = sample.power_limit_mw
        part = f" {numbers.percent(share(sample.power_mw, limit))}" if limit and room == POWER else ""
        whole = f"/{limit // 1000}" if limit else ""
        return [(pad(f"{sample.power_mw // 1000}{whole} W{part}", room), "")]

    def _value(self, device: Device, column: str, unit: str, room: int) -> Line:
        value: int | None = getattr(device.sample, column)
        return [(f"{'n/a' if value is None else f'{value}{unit}':>{room}}", "label" if value is None else "")]

    def _state(self, device: Device) -> Line:
        state = device.sample.state
        role: Role = "good" if state == "ok" else "bad" if state == "lost" else "warn"
        if device.old_ns > STALE_NS:
            return [(f"silent {numbers.seconds(device.old_ns)}", "warn")]
        return [(self.glyphs.name(state), role)]


def _busy(sample: GpuSample) -> tuple[float, str] | None:
    """Part of the time in which it worked, and in percent: by tenths where DCGM tells it, else as NVML does."""
    if sample.active_ppm is not None:
        percent = sample.active_ppm / 10_000
        return percent / 100, f"{percent:.1f}" if percent < 99.95 else "100"
    return None if sample.util_pct is None else (sample.util_pct / 100, str(sample.util_pct))


def _cells(width: int) -> int:
    return BAR if width >= WITH_BARS else 0


def _power_room(width: int) -> int:
    return POWER if width >= WITH_BARS else POWER_BRIEF
