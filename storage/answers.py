"""Answers of a store: rows of a table, or what a SELECT gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from . import history
from .answer import Answer
from .archive import in_order, merged
from .layout import instant_text
from .query import Query
from .source import Source

if TYPE_CHECKING:
    import duckdb

    from .sql import Select

FORMS = ".df(), .arrow(), .relation() or .reader()"


class TableAnswer(Answer):
    """Rows of one table. `rider` limits steps to those with a share of that tenant."""

    def __init__(self, source: Source, query: Query, rider: str | None = None) -> None:
        """Raises InputError for a column that the table lacks."""
        self.schema = query.schema
        self._source, self._query, self._rider = source, query, rider

    def reader(self) -> pa.RecordBatchReader:
        """The rows batch by batch; lines of the ledger with one key may be several and add up."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def arrow(self) -> pa.Table:
        """All rows, in the table's order as far as its columns were asked for; lines of the ledger are added up."""
        table, rows = self._query.table, self.reader().read_all()
        names = set(rows.column_names)
        if names.issuperset(column.name for column in table.columns):
            rows = merged(table, rows)
        return in_order(table, rows) if names.issuperset(table.sort) else rows

    def relation(self) -> duckdb.DuckDBPyRelation:
        """The rows as a lazy DuckDB relation; see `Answer.relation`."""
        from .sql import lend

        return lend(self._source, self._select())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        if self._rider is None:
            source = self._source
            yield from history.scan(source.layout, source.database, self._query, source.warnings)
            return
        from .sql import run

        for batch in run(self._source, self._select()):
            yield from pa.Table.from_batches([batch]).cast(self.schema).to_batches()

    def _select(self) -> Select:
        from .sql import Select, text_of

        query = self._query
        return Select(text_of(query, self._rider), query.start_ns, query.end_ns, query.engine_id)

    def _instants(self) -> Sequence[str]:
        return [c.name for c in self._query.table.columns if c.is_instant and c.name in self.schema.names]

    def __repr__(self) -> str:
        query, name = self._query, self._query.table.name
        start = "the beginning" if query.start_ns is None else instant_text(query.start_ns)
        end = "now" if query.end_ns is None else instant_text(query.end_ns)
        limits = [*query.matches, *([("engine_id", query.engine_id)] if query.engine_id else [])]
        limits += [("rider", self._rider)] if self._rider else []
        only = "".join(f", {column} {text}" for column, text in limits)
        return f"<{name} from {start} to {end}{only}: {FORMS}>"


class SqlAnswer(Answer):
    """What a SELECT gives."""

    def __init__(self, source: Source, select: Select) -> None:
        self._source, self._select = source, select

    def reader(self) -> pa.RecordBatchReader:
        """The rows batch by batch; 128-bit sums as decimals."""
        from .sql import run

        return run(self._source, self._select)

    def arrow(self) -> pa.Table:
        """All rows; sums as int64 where they fit."""
        from .frames import exact

        return exact(self.reader().read_all())

    def relation(self) -> duckdb.DuckDBPyRelation:
        """The answer as a lazy DuckDB relation; see `Answer.relation`."""
        from .sql import lend

        return lend(self._source, self._select)

    def __repr__(self) -> str:
        return f"<answer to {self._select.text!r}: {FORMS}>"
