"""A closing: a period's bill, frozen."""

from typing import Annotated, NamedTuple

from .table import Table, col


class Closing(NamedTuple):
    """A closed period. The bill is kept as it was; what arrives later becomes a correction in an open period.

    One that was closed by mistake is reopened: its bill stays here as history, and the next one has the next version.
    """

    period: Annotated[str, col("", "the period as 2026-10, or from/to")]
    tz: Annotated[str, col("", "IANA zone whose midnights bound it")]
    from_ns: Annotated[int, col("UTC ns", "its first instant")]
    to_ns: Annotated[int, col("UTC ns", "the first instant after it")]
    version: Annotated[int, col("", "1, and one more each time the period is closed again")]
    closed_ns: Annotated[int, col("UTC ns", "when it was closed")]
    content_hash: Annotated[str, col("", "SHA-256 of `content`, in hex")]
    content: Annotated[str, col("", "the bill: lines, method, rate card and versions, as JSON")]
    reopened_ns: Annotated[int | None, col("UTC ns", "when it was reopened; null: it stands")]
    reason: Annotated[str | None, col("", "why it was reopened; null: it stands")]

    @property
    def stands(self) -> bool:
        """Whether this is the bill of its period."""
        return self.reopened_ns is None


CLOSINGS = Table("closings", Closing, key=("from_ns", "to_ns", "version"), time="from_ns", sort=("from_ns", "version"))
