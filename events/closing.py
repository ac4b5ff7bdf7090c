"""A closing: a period's bill, frozen."""

from typing import Annotated, NamedTuple

from .table import Table, col


class Closing(NamedTuple):
    """A closed period. The bill is kept as it was; what arrives later becomes a correction in the open period."""

    period: Annotated[str, col("", "the period as 2026-10, or from/to")]
    tz: Annotated[str, col("", "IANA zone whose midnights bound it")]
    from_ns: Annotated[int, col("ns", "its first instant, UTC")]
    to_ns: Annotated[int, col("ns", "the first instant after it, UTC")]
    closed_ns: Annotated[int, col("ns", "when it was closed, UTC")]
    content_hash: Annotated[str, col("", "SHA-256 of `content`, in hex")]
    content: Annotated[str, col("", "the bill: lines, method, rate card and versions, as JSON")]


CLOSINGS = Table("closings", Closing, key=("from_ns", "to_ns"), time="from_ns", sort=("from_ns",))
