"""An answer: what a question to a store gives, as pandas, as Arrow or lazily in DuckDB, whichever is asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import pyarrow as pa


class Answer(ABC):
    """Rows that are read when they are asked for, and each time anew.

    It is an Arrow stream too (`__arrow_c_stream__`), so `polars.DataFrame(answer)` and `pyarrow.table(answer)` take it.
    """

    @abstractmethod
    def reader(self) -> pa.RecordBatchReader:
        """The rows batch by batch in bounded memory, in no promised order."""

    @abstractmethod
    def arrow(self) -> pa.Table:
        """All rows as an Arrow table."""

    @abstractmethod
    def relation(self) -> duckdb.DuckDBPyRelation:
        """The rows as a DuckDB relation, which reads what it is asked for; it lives until the store is closed.

        Sums of integers have 128 bits there: exact in `fetchall` and Arrow, but `relation().df()` makes floats of them.
        """

    def df(self) -> pd.DataFrame:
        """All rows as pandas: integers are Int64, so that they stay exact and may be null (unknown)."""
        from .frames import to_pandas

        return to_pandas(self.arrow(), self._instants())

    def _instants(self) -> Sequence[str]:
        """Columns of the answer that pandas gets as datetimes too."""
        return ()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader: Any = self.reader()
        return reader.__arrow_c_stream__(requested_schema)
