"""GPU readings as people read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .listing import print_table, when

if TYPE_CHECKING:
    from ..collector.nvml.last import LastSeen
    from ..events import GpuSample

_GIB = 2**30
HEAD = ("GPU", "name", "state", "busy time", "memory (reserved)", "power", "of limit", "clock", "temp", "id")
_OWN_COLUMNS = ("power_mw", "power_limit_mw", "energy_mj", "sm_clock_mhz", "temperature_c")


def print_gpus(samples: Sequence[GpuSample]) -> None:
    """A row per device and slice, then why what is n/a is."""
    print_table(HEAD, [_row(sample, sample.state) for sample in samples], "no GPU")
    for line in reasons(samples):
        click.echo(line)


def print_last(found: Sequence[LastSeen]) -> None:
    """The same for the newest readings in a store: of what is lost or stale the last good ones, and since when."""
    rows = [
        _row(one.good or one.newest, one.state if one.state == "ok" else f"{one.state} since {when(one.since_ns)}")
        for one in found
    ]
    print_table(HEAD, rows, "no GPU reading in the last hours: `farebox gpu --watch STORE` records them")


def reasons(samples: Sequence[GpuSample]) -> list[str]:
    """`n/a` explained: a line per device and reason; what slices never have is not repeated for each."""
    lines: list[str] = []
    for sample in samples:
        columns: dict[str, list[str]] = {}
        for column, why in json.loads(sample.missing or "{}").items():
            if sample.parent_uuid is None or column not in _OWN_COLUMNS:
                columns.setdefault(why, []).append(column)
        if sample.shared_by:
            lines.append(
                f"GPU {sample.device}: shared by {', '.join(sample.shared_by)}: all values are device-level values"
            )
        name = f"GPU {sample.device}" if sample.parent_uuid is None else f"slice {sample.gpu_uuid}"
        lines += [f"{name}: {', '.join(names)}: {why}" for why, names in columns.items()]
    return lines


def _row(sample: GpuSample, state: str) -> tuple[str, ...]:
    scope = f" {sample.power_scope}" if sample.power_scope else ""
    return (
        str(sample.device) if sample.parent_uuid is None else f"{sample.device} slice",
        sample.name or "n/a",
        state,
        _busy(sample),
        _memory(sample),
        "n/a" if sample.power_mw is None else f"{sample.power_mw / 1000:.0f} W{scope}",
        _of_limit(sample),
        _with("{} MHz", sample.sm_clock_mhz),
        _with("{} °C", sample.temperature_c),
        sample.gpu_uuid,
    )


def _busy(sample: GpuSample) -> str:
    """Part of the time with work, as finely as it is told."""
    return _with("{} %", sample.util_pct) if sample.active_ppm is None else f"{sample.active_ppm / 10_000:.1f} %"


def _with(form: str, value: int | None) -> str:
    return "n/a" if value is None else form.format(value)


def _memory(sample: GpuSample) -> str:
    if sample.mem_used is None or not sample.mem_total:
        return "n/a"
    whose = " of the host" if sample.mem_kind == "unified" else ""
    used, total = sample.mem_used / _GIB, sample.mem_total / _GIB
    return f"{used:.1f} of {total:.1f} GiB{whose} ({100 * used / total:.1f} %)"


def _of_limit(sample: GpuSample) -> str:
    if sample.power_mw is None or not sample.power_limit_mw or sample.power_scope == "module":
        return "n/a"
    return f"{100 * sample.power_mw / sample.power_limit_mw:.0f} % of {sample.power_limit_mw / 1000:.0f} W"
