"""Tables of events: a record class is the schema, and this module reads it.

Every record is a `NamedTuple` whose fields are annotated with `col(unit, doc)`. Arrow schemas, SQL tables and the
documentation are derived from that one place, so they cannot disagree.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["int", "str", "strs", "ints"]
_KINDS: dict[Any, Kind] = {int: "int", str: "str", tuple[str, ...]: "strs", tuple[int, ...]: "ints"}


class Meta(NamedTuple):
    """What a column means: its unit ("" for names and plain counts, "UTC ns" for instants) and one sentence."""

    unit: str
    doc: str


def col(unit: str, doc: str) -> Meta:
    """Describe a record field: `Annotated[int, col("UTC ns", "start of the step")]`."""
    return Meta(unit, doc)


@dataclass(frozen=True)
class Column:
    """One column: name, kind of value, unit, whether null (= unknown) may stand in it, and its meaning."""

    name: str
    kind: Kind
    nullable: bool
    unit: str
    doc: str

    @property
    def is_instant(self) -> bool:
        """Whether its numbers are points in time, not durations."""
        return self.unit == "UTC ns"


@dataclass(frozen=True)
class Table:
    """A table of one record type.

    `key` names the columns that identify a row, `time` the column that dates it (UTC nanoseconds), and `sort` the
    order of rows in the archive.
    """

    name: str
    record: type[Any]
    key: tuple[str, ...]
    time: str
    sort: tuple[str, ...]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns in record order."""
        hints = get_type_hints(self.record, include_extras=True)
        return tuple(_column(name, hints[name]) for name in self.record._fields)

    @cached_property
    def schema(self) -> pa.Schema:
        """The Arrow schema: int64, utf8 or lists of them; non-nullable where null has no meaning."""
        import pyarrow as pa

        kinds: dict[Kind, pa.DataType] = {
            "int": pa.int64(),
            "str": pa.string(),
            "strs": pa.list_(pa.string()),
            "ints": pa.list_(pa.int64()),
        }
        fields = [
            pa.field(c.name, kinds[c.kind], nullable=c.nullable, metadata={"unit": c.unit, "doc": c.doc})
            for c in self.columns
        ]
        return pa.schema(fields)

    def to_arrow(self, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
        """Turn records of this table into an Arrow table; an empty iterable gives an empty table.

        Raises `ValueError` for a null in a column where null has no meaning.
        """
        import pyarrow as pa

        columns = list(zip(*rows, strict=True)) or [()] * len(self.columns)
        types: list[Any] = list(self.schema.types)
        arrays: list[Any] = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
        for column, array in zip(self.columns, arrays, strict=True):
            if array.null_count and not column.nullable:
                raise ValueError(f"{self.name}.{column.name} is null in {array.null_count} rows; it must be known")
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def from_arrow(self, table: pa.Table) -> list[Any]:
        """Turn an Arrow table back into records; the inverse of `to_arrow`."""
        names = [c.name for c in self.columns]
        columns: list[list[Any]] = [table.column(name).to_pylist() for name in names]
        lists = {i for i, c in enumerate(self.columns) if c.kind in ("strs", "ints")}
        for i in lists:
            columns[i] = [None if v is None else tuple(v) for v in columns[i]]
        return [self.record(*row) for row in zip(*columns, strict=True)]


def _column(name: str, hint: object) -> Column:
    inner, meta = get_args(hint) if get_origin(hint) is Annotated else (hint, Meta("", ""))
    options = get_args(inner) if get_origin(inner) in (Union, types.UnionType) else (inner,)
    nullable = type(None) in options
    kind: Kind = next(_KINDS[option] for option in options if option is not type(None))
    return Column(name, kind, nullable, meta.unit, meta.doc)
