"""A question to a store: which columns of a table, of which time and engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import ColumnElement

from ..errors import InputError
from ..events import Table
from .rows import coded, projected
from .tables import SQL_TABLES

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc

MIN_NS, MAX_NS = -(2**63), 2**63 - 1


class Query(NamedTuple):
    """Rows of `table` whose time is in [start, end), of one engine, as the named columns; None sets no limit."""

    table: Table
    columns: Sequence[str] | None = None
    start_ns: int | None = None
    end_ns: int | None = None
    engine_id: str | None = None
    coded: bool = False
    """Texts as Arrow dictionaries: names repeat, and sums by name need no more than their codes."""
    matches: tuple[tuple[str, str], ...] = ()
    """Columns and the text that rows must have in them."""

    @property
    def names(self) -> list[str]:
        """The columns of the answer, in its order. Raises InputError for one that the table lacks."""
        known = [column.name for column in self.table.columns]
        if self.columns is None:
            return known
        unknown = [name for name in self.columns if name not in known]
        if unknown or not self.columns:
            missed = ", ".join(unknown) or "(none named)"
            raise InputError(f"table {self.table.name} has no column {missed}; it has {', '.join(known)}")
        return list(self.columns)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the answer."""
        return self._typed(projected(self.table, self.names))

    @property
    def file_schema(self) -> pa.Schema:
        """The Arrow schema of the whole table, as its files are read."""
        return self._typed(self.table.schema)

    def sql_conditions(self) -> list[ColumnElement[bool]]:
        """The limits for the hot store."""
        sql = SQL_TABLES[self.table.name]
        conditions: list[ColumnElement[bool]] = []
        if self.start_ns is not None:
            conditions.append(sql.c[self.table.time] >= self.start_ns)
        if self.end_ns is not None:
            conditions.append(sql.c[self.table.time] < self.end_ns)
        if self.engine_id is not None and self._has_engines:
            conditions.append(sql.c.engine_id == self.engine_id)
        conditions += [sql.c[name] == text for name, text in self.matches]
        return conditions

    def arrow_condition(self, min_ns: int = MIN_NS, max_ns: int = MAX_NS) -> pc.Expression | None:
        """The limits that matter for a file of the archive with rows in [min_ns, max_ns]; None: all rows are meant."""
        import pyarrow.compute as pc

        conditions: list[pc.Expression] = []
        if self.start_ns is not None and min_ns < self.start_ns:
            conditions.append(pc.field(self.table.time) >= self.start_ns)
        if self.end_ns is not None and max_ns >= self.end_ns:
            conditions.append(pc.field(self.table.time) < self.end_ns)
        if self.engine_id is not None and self._has_engines:
            conditions.append(pc.field("engine_id") == self.engine_id)
        conditions += [pc.field(name) == text for name, text in self.matches]
        return _all(conditions)

    @property
    def _has_engines(self) -> bool:
        """Settings and samples hold for every engine."""
        return "engine_id" in SQL_TABLES[self.table.name].c

    def _typed(self, schema: pa.Schema) -> pa.Schema:
        return coded(schema) if self.coded else schema


def _all(conditions: list[pc.Expression]) -> pc.Expression | None:
    met = None
    for condition in conditions:
        met = condition if met is None else met & condition
    return met
