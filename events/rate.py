"""A rate: what an hour of GPU costs, and from when to when."""

from typing import Annotated, NamedTuple

from .table import Table, col


class Rate(NamedTuple):
    """Price of one GPU-hour for a GPU type ("*" for any), valid in [from, to), from whole minutes."""

    gpu_type: Annotated[str, col("", 'GPU type as `roofline` spells it, or "*" for any')]
    currency: Annotated[str, col("", "ISO 4217 code")]
    per_gpu_hour: Annotated[str, col("currency/GPU·h", "price as decimal text; never a float")]
    from_ns: Annotated[int, col("ns", "first instant it holds, UTC")]
    to_ns: Annotated[int | None, col("ns", "first instant it no longer holds; null: open")]
    note: Annotated[str, col("", 'where it comes from, e.g. "example"')]


RATES = Table("rates", Rate, key=("gpu_type", "from_ns"), time="from_ns", sort=("gpu_type", "from_ns"))
