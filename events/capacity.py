"""Capacity: the GPUs that finance pays for, whether or not an engine runs on them."""

from typing import Annotated, NamedTuple

from .table import Table, col


class Capacity(NamedTuple):
    """GPUs of one type on one host, paid for in [from, to). Declared time without a run is unobserved, not free."""

    host: Annotated[str, col("", "the host")]
    gpu_type: Annotated[str, col("", "GPU type, as `roofline` spells it")]
    gpus: Annotated[int, col("GPUs", "how many")]
    from_ns: Annotated[int, col("UTC ns", "first instant that is paid; a whole minute")]
    to_ns: Annotated[int | None, col("UTC ns", "first instant that is no longer paid; null: open")]
    note: Annotated[str, col("", "e.g. the contract")]


CAPACITIES = Table(
    "capacities", Capacity, key=("host", "gpu_type", "from_ns"), time="from_ns", sort=("host", "gpu_type", "from_ns")
)
