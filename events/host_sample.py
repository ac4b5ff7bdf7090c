"""A host sample: one look at a host's processors and memory."""

from typing import Annotated, NamedTuple

from .table import Table, col


class HostSample(NamedTuple):
    """One reading of a host. Null: it could not be read."""

    host: Annotated[str, col("", "the host")]
    at_ns: Annotated[int, col("UTC ns", "when it was read")]
    cpus: Annotated[int, col("", "logical processors")]
    cpu_permille: Annotated[int | None, col("‰", "part of all processors in use since the reading before")]
    mem_used: Annotated[int | None, col("bytes", "memory in use")]
    mem_total: Annotated[int | None, col("bytes", "memory of the host")]


HOST_SAMPLES = Table("host", HostSample, key=("host", "at_ns"), time="at_ns", sort=("host", "at_ns"))
