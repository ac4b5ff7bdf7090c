"""Arrow tables as pandas frames that keep every integer exact, nulls or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import pandas as pd


def to_pandas(rows: pa.Table, instants: Sequence[str] = ()) -> pd.DataFrame:
    """Rows as pandas: whole numbers as nullable Int64, texts as pandas' strings.

    Each of `instants`, a column of UTC nanoseconds that is called `…_ns`, gets a neighbour without that ending: the
    same as datetime64[ns, UTC]. The integers stay.
    """
    import pandas as pd

    types: Any = {pa.int8(): pd.Int8Dtype(), pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}
    frame = exact(rows).to_pandas(types_mapper=types.get)
    for name in instants:
        at: Any = rows.column(name).cast(pa.timestamp("ns", "UTC"))
        frame.insert(list(frame.columns).index(name) + 1, name.removesuffix("_ns"), at.to_pandas())
    return frame


def exact(rows: pa.Table) -> pa.Table:
    """Sums, which DuckDB gives 128 bits, as int64 where they fit; pandas would make floats of them."""
    kinds: list[Any] = rows.schema.types
    for i, kind in enumerate(kinds):
        if pa.types.is_decimal(kind) and kind.scale == 0:
            rows = rows.set_column(i, rows.column_names[i], _narrowed(rows.column(i)))
    return rows


def _narrowed(column: Any) -> Any:
    """Whole decimals as int64; as they are when one does not fit."""
    ends = pc.min_max(column)
    fits = all(end.as_py() is None or -(2**63) <= end.as_py() < 2**63 for end in (ends["min"], ends["max"]))
    return column.cast(pa.int64()) if fits else column
