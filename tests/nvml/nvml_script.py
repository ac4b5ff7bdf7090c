"""What a driver answers, written down as cases have it, for the stub library."""

import json
from pathlib import Path
from typing import Any

import pynvml

SECOND_NS = 1_000_000_000
START_NS = 1_767_225_600 * SECOND_NS
CASES = Path(__file__).resolve().parents[1] / "cases"
FIELDS = {
    "POWER_AVERAGE scope GPU": f"field_{pynvml.NVML_FI_DEV_POWER_AVERAGE}_{pynvml.NVML_POWER_SCOPE_GPU}",
    "POWER_INSTANT scope GPU": f"field_{pynvml.NVML_FI_DEV_POWER_INSTANT}_{pynvml.NVML_POWER_SCOPE_GPU}",
    "POWER_AVERAGE scope MODULE": f"field_{pynvml.NVML_FI_DEV_POWER_AVERAGE}_{pynvml.NVML_POWER_SCOPE_MODULE}",
}
PLAIN = {
    "uuid": "uuid",
    "name": "name",
    "power_mW": "power",
    "power_limit_mW": "power_limit",
    "temperature_C": "temperature",
    "energy_mJ": "energy",
    "sm_clock_MHz": "sm_clock",
}


def case(name: str) -> dict[str, Any]:
    return json.loads((CASES / f"{name}.nvml.json").read_text("utf-8"))


def lines(poll: dict[str, Any]) -> str:
    """A poll of a case as the stub reads it."""
    devices = poll.get("devices", [])
    out = [_line("-", "init", poll.get("init", "")), _line("-", "driver", poll.get("driver", "580.00"))]
    out.append(_line("-", "count", poll.get("count", len(devices))))
    for number, device in enumerate(devices):
        out += _device(str(number), device, device.get("name", ""))
    return "\n".join(out) + "\n"


def _device(place: str, device: dict[str, Any], name: str) -> list[str]:
    if "all_calls" in device:
        return [_line(place, "handle", ""), _line(place, "all", device["all_calls"])]
    out = [_line(place, "handle", device.get("handle", ""))]
    out += [_line(place, what, device[key]) for key, what in PLAIN.items() if key in device]
    out += [_line(place, FIELDS[key], value) for key, value in device.get("field_values", {}).items()]
    if "memory" in device:
        out.append(_line(place, "memory_v2", _memory(device["memory"])))
    if "utilization" in device:
        busy = device["utilization"]
        out.append(_line(place, "utilization", busy.get("gpu", busy)))
    if "mig_mode" in device:
        out.append(_line(place, "mig_mode", device["mig_mode"][0]))
    for number, one in enumerate(device.get("mig_devices", [])):
        out += _device(f"{place}.{number}", {"name": f"{name} MIG {one['profile']}"} | one, name)
    return out


def _memory(found: dict[str, Any]) -> Any:
    if "raise" in found:
        return found
    return f"{found['total']} {found['total'] - found['used']} {found['used']}"


def _line(place: str, what: str, value: Any) -> str:
    if isinstance(value, dict):
        return f"{place} {what} {getattr(pynvml, 'NVML_ERROR_' + value['raise'])}"
    return f"{place} {what} 0 {value}"
