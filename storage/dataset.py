"""Tables of a store as lazy Arrow data sets: what a query does not ask for is not read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import date
from typing import Any, NamedTuple, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ..events import Table
from . import hot
from .damage import check
from .database import Database
from .files import Files, open_files
from .layout import DAY_NS, Layout
from .manifest import ArchivedFile, files_of
from .parquet import FORMAT
from .query import Query
from .tables import ROLLED

_DS = cast(Any, ds)  # its stubs know no constructors
DATE = "date"
"""The UTC date of a row, by which files are put into folders."""


class Tables(NamedTuple):
    """Data sets by the name of their table, all of one instant, and the files that they read."""

    datasets: dict[str, ds.Dataset]
    files: list[ArchivedFile]


def tables_for(layout: Layout, database: Database, queries: Sequence[Query], skipped: Collection[str] = ()) -> Tables:
    """The rows that each query is about, with all columns.

    Tables that are rolled get a column `date` beside their own. Comparisons with it and with time skip
    files, by what the manifest says of them; those with time and with the engine skip row groups. Files in `skipped`
    are left out. While the data sets are in use, no file may be removed: hold `files_kept`.
    """
    found = Tables({}, [])
    with database.reading() as connection:
        for query in queries:
            name, columns = query.table.name, [column.name for column in query.table.columns]
            if query.table not in ROLLED:
                rows = hot.rows_where(connection, query.table, columns, *query.sql_conditions())
                found.datasets[name] = ds.dataset(rows)
                continue
            files = files_of(connection, name, query.start_ns, query.end_ns)
            kept = [file for file in files if file.path not in skipped]
            rows = hot.unarchived(connection, query.table, columns, *query.sql_conditions())
            found.datasets[name] = _joined(open_files(layout), query, kept, rows)
            found.files.extend(kept)
    return found


class CheckedDataset(ds.UnionDataset):
    """Archived and hot rows as one. A file is checked when a scan needs it, and not before: see `damage.check`."""

    def look_at(self, files: Files, listed: Sequence[ArchivedFile], limit: pc.Expression | None) -> None:
        """What its scans check and never go beyond."""
        self._files, self._limit = files, limit
        self._listed = {files.at(file.path): file for file in listed}

    def scanner(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, *, filter: pc.Expression | None = None, **options: Any
    ) -> ds.Scanner:
        """Scan what meets a condition; OSError when a file that may hold some of it is damaged."""
        met = filter if self._limit is None else self._limit if filter is None else self._limit & filter
        archived: Any = self.children[0]
        for fragment in archived.get_fragments(met):
            check(self._files, self._listed[fragment.path])
        return super().scanner(filter=met, **options)


def _joined(files: Files, query: Query, listed: Sequence[ArchivedFile], rows: pa.Table) -> ds.Dataset:
    table, schema = query.table, dated(query.table)
    fragments: list[Any] = [_fragment(files, table, file) for file in listed]
    archived = _DS.FileSystemDataset(fragments, schema, FORMAT, files.filesystem)
    joined = cast(Any, CheckedDataset)(schema, [archived, ds.dataset(_with_date(table, rows))])
    joined.look_at(files, listed, query.arrow_condition())
    return joined


def dated(table: Table) -> pa.Schema:
    """The Arrow schema of a table with `date` behind its own columns."""
    return table.schema.append(pa.field(DATE, pa.date32(), metadata={"unit": "", "doc": "the UTC date of the row"}))


def _fragment(files: Files, table: Table, file: ArchivedFile) -> Any:
    at = pc.field(table.time)
    day = pc.field(DATE) == pa.scalar(date.fromisoformat(file.date))
    within = day & (at >= file.min_ns) & (at <= file.max_ns)
    return FORMAT.make_fragment(files.at(file.path), filesystem=files.filesystem, partition_expression=within)


def _with_date(table: Table, rows: pa.Table) -> pa.Table:
    days: Any = rows.column(table.time).to_numpy() // DAY_NS
    column: Any = pa.array(days, pa.int64()).cast(pa.int32()).cast(pa.date32())
    return rows.append_column(cast(Any, dated(table).field(DATE)), column)
