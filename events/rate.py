"""A rate: what an hour of GPU costs, and from when to when."""

from typing import Annotated, Literal, NamedTuple

from .table import Table, col

RateScope = Literal["any", "gpu_type", "host", "engine"]


class Rate(NamedTuple):
    """Price of one GPU-hour for what `scope` and `name` say, valid in [from, to), from whole minutes.

    The narrowest scope that fits wins: engine, host, gpu_type, any.
    """

    scope: Annotated[str, col("", "what the rate is for: any, gpu_type, host or engine")]
    name: Annotated[str, col("", "the GPU type (as `roofline` spells it), host or engine; empty for any")]
    currency: Annotated[str, col("", "ISO 4217 code")]
    per_gpu_hour: Annotated[str, col("currency/GPU·h", "price as exact decimal text or a fraction p/q; never a float")]
    terms: Annotated[str | None, col("", "terms of ownership that the price was computed from, as JSON; null: a price")]
    from_ns: Annotated[int, col("UTC ns", "first instant it holds; a whole minute")]
    to_ns: Annotated[int | None, col("UTC ns", "first instant it no longer holds; null: open")]
    note: Annotated[str, col("", 'where it comes from, e.g. "example"')]


RATES = Table("rates", Rate, key=("scope", "name", "from_ns"), time="from_ns", sort=("scope", "name", "from_ns"))
