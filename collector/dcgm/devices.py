"""The devices of a DCGM exporter's page: its series, grouped by what they are of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ..scrape.page import Page, Sample

PREFIX = "DCGM_FI_"
_UUIDS = ("UUID", "uuid", "gpu_uuid")
_HOSTS = ("Hostname", "hostname")
_SHARERS = ("pod", "hpc_job", "vgpu")


@dataclass
class Exported:
    """A device, or a slice of one: every value that the page tells of it, by family.

    A page that tells who uses a device repeats its values for each of them, so a family may have several.
    """

    uuid: str
    parent_uuid: str | None = None
    number: int = 0
    name: str = ""
    host: str | None = None
    sharers: set[str] = field(default_factory=set[str])
    values: dict[str, set[float | None]] = field(default_factory=dict[str, "set[float | None]"])
    of_slices: dict[str, set[float | None]] = field(default_factory=dict[str, "set[float | None]"])
    """A device's values as series of its slices tell them."""


def devices_of(page: Page) -> list[Exported]:
    """Every device and slice of a page, devices before their slices."""
    found: dict[str, Exported] = {}
    for family in page.samples:
        if family.startswith(PREFIX):
            for sample in page.get(family):
                _take(found, family, sample)
    return sorted(found.values(), key=lambda one: (one.number, one.parent_uuid or one.uuid, one.uuid))


def _take(found: dict[str, Exported], family: str, sample: Sample) -> None:
    labels = sample.labels
    uuid = _first(labels, _UUIDS) or (f"index-{labels['gpu']}" if "gpu" in labels else None)
    if uuid is None:
        return
    device = found.setdefault(uuid, Exported(uuid))
    _name(device, labels, labels.get("modelName"))
    part = labels.get("GPU_I_ID")
    if not part:
        device.values.setdefault(family, set()).add(sample.value)
        device.sharers |= _sharer(labels)
        return
    device.of_slices.setdefault(family, set()).add(sample.value)
    slice_uuid = f"{uuid}/{part}"
    one = found.setdefault(slice_uuid, Exported(slice_uuid, uuid))
    _name(one, labels, labels.get("GPU_I_PROFILE"))
    one.values.setdefault(family, set()).add(sample.value)
    one.sharers |= _sharer(labels)


def _name(one: Exported, labels: dict[str, str], name: str | None) -> None:
    number = labels.get("gpu", "")
    one.number = int(number) if number.isdecimal() else one.number
    one.name = one.name or name or ""
    one.host = one.host or _first(labels, _HOSTS)


def _sharer(labels: dict[str, str]) -> set[str]:
    """Who the series says uses the device: a pod with its namespace, a job, or a virtual GPU."""
    name = _first(labels, _SHARERS)
    space = labels.get("namespace")
    return set() if name is None else {f"{space}/{name}" if space and labels.get("pod") else name}


def _first(labels: dict[str, str], names: Iterable[str]) -> str | None:
    return next((labels[name] for name in names if labels.get(name)), None)
