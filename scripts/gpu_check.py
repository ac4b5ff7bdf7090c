"""Check on a machine with NVIDIA GPUs that everything Farebox reads of them can be read, and adds up.

    python scripts/gpu_check.py [SECONDS]

Looks once a second (10 times unless told otherwise), prints a report as JSON, and ends with 0 if every device
answered each time, 1 if not.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from farebox.collector.hardware import steady_clock
from farebox.collector.host import host_memory
from farebox.collector.nvml.watch import GpuWatch, Poll, reasons_of
from farebox.events import GpuSample

VALUES = (
    "util_pct",
    "mem_used",
    "mem_total",
    "power_mw",
    "power_limit_mw",
    "energy_mj",
    "sm_clock_mhz",
    "temperature_c",
)


def main(seconds: int = 10) -> int:
    """Look, report, judge."""
    clock, watch, polls = steady_clock(), GpuWatch(host_memory=host_memory), list[Poll]()
    cost = 0.0
    for _ in range(seconds):
        began = time.process_time()
        polls.append(watch.poll(clock()))
        cost += time.process_time() - began
        time.sleep(1)
    driver = watch.driver() if polls[-1].state != "down" else None
    watch.close()
    troubles = sorted({poll.why for poll in polls if poll.why})
    devices = [_device([s for poll in polls for s in poll.samples if s.gpu_uuid == uuid]) for uuid in _uuids(polls)]
    troubles += [f"{one['uuid']}: {one['trouble']}" for one in devices if one["trouble"]]
    report = {"driver": driver, "cpu_percent": round(100 * cost / seconds, 3), "troubles": troubles, "devices": devices}
    print(json.dumps(report, indent=2, ensure_ascii=False))
    return 1 if troubles or not devices else 0


def _uuids(polls: list[Poll]) -> list[str]:
    return list(dict.fromkeys(sample.gpu_uuid for poll in polls for sample in poll.samples))


def _device(samples: list[GpuSample]) -> dict[str, Any]:
    first, last = samples[0], samples[-1]
    return {
        "uuid": last.gpu_uuid,
        "name": last.name,
        "parent_uuid": last.parent_uuid,
        "values": {name: getattr(last, name) for name in (*VALUES, "mem_kind", "power_scope", "energy_basis")},
        "missing": reasons_of(last),
        "mean_watts": _mean_watts(first, last),
        "trouble": _trouble(samples),
    }


def _mean_watts(first: GpuSample, last: GpuSample) -> float | None:
    """Mean power by energy, to hold beside the power readings."""
    if first.energy_mj is None or last.energy_mj is None or last.at_ns == first.at_ns:
        return None
    return round((last.energy_mj - first.energy_mj) * 1e6 / (last.at_ns - first.at_ns), 1)


def _trouble(samples: list[GpuSample]) -> str | None:
    """What cannot be: a device that does not answer, more memory used than there is, energy that shrinks."""
    if any(sample.state != "ok" for sample in samples):
        return "it did not answer every time"
    if any(s.mem_used is not None and s.mem_total is not None and s.mem_used > s.mem_total for s in samples):
        return "more memory used than there is"
    energy = [sample.energy_mj for sample in samples if sample.energy_mj is not None]
    return None if energy == sorted(energy) else "its energy shrinks"


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
