"""A GPU sample: one look at one device."""

from typing import Annotated, Literal, NamedTuple

from .table import Table, col

GpuState = Literal["ok", "lost", "stale", "unavailable"]


class GpuSample(NamedTuple):
    """One reading of a GPU or of a MIG slice. Null: it could not be read, and `missing` tells why."""

    host: Annotated[str, col("", "the host")]
    gpu_uuid: Annotated[str, col("", "the device or the MIG slice")]
    at_ns: Annotated[int, col("UTC ns", "when it was read")]
    device: Annotated[int, col("", "number of the device on its host")]
    name: Annotated[str, col("", "the product's name")]
    parent_uuid: Annotated[str | None, col("", "the device that a MIG slice is part of; null: it is no slice")]
    state: Annotated[str, col("", "ok, lost, stale or unavailable")]
    util_pct: Annotated[int | None, col("%", "part of the time in which some kernel ran; it says nothing of how full")]
    mem_used: Annotated[int | None, col("bytes", "memory in use")]
    mem_total: Annotated[int | None, col("bytes", "memory of the device, or of the host that it shares")]
    mem_kind: Annotated[str | None, col("", "own, or unified: the host's memory; null: not known")]
    power_mw: Annotated[int | None, col("mW", "power drawn")]
    power_scope: Annotated[str | None, col("", "what `power_mw` measures: average, instant or module; null: not known")]
    power_limit_mw: Annotated[int | None, col("mW", "the power limit that is enforced")]
    energy_mj: Annotated[int | None, col("mJ", "energy since the watch began")]
    energy_basis: Annotated[str | None, col("", "counter, or power: integrated from power readings; null: not known")]
    sm_clock_mhz: Annotated[int | None, col("MHz", "clock of the multiprocessors")]
    temperature_c: Annotated[int | None, col("°C", "temperature")]
    missing: Annotated[str | None, col("", "what could not be read, as JSON: column → reason")]
    active_ppm: Annotated[int | None, col("ppm", "part of the time in which its engine worked; only DCGM tells")] = None
    shared_by: Annotated[
        tuple[str, ...] | None, col("", "who shares it, if several do: all values are the device's")
    ] = None


GPU_SAMPLES = Table(
    "gpu",
    GpuSample,
    key=("host", "gpu_uuid", "at_ns"),
    time="at_ns",
    sort=("host", "gpu_uuid", "at_ns"),
)
