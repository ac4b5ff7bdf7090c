"""Rows of the event tables in the hot store, and the watermark that says which of them the archive has too.

Rows get ids in the order of insertion. Those up to a table's watermark are copies of archived rows, kept because the
live screens look at them; those above are nowhere else.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Dialect, Select, case, delete, func, insert, select

from ..events import REQUESTS, Table
from .rows import arrow_columns, projected, records, sql_rows
from .tables import ROLLED, SAMPLES, SQL_TABLES, WATERMARKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from ..events import Request, Run

_PIECE = 50_000
_ASKED = 500
"""Keys that one query asks for."""


def add_rows(connection: Connection, table: Table, rows: pa.Table) -> None:
    """Insert Arrow rows; they get ids above every id given out before (dropped rows lie below the watermark)."""
    if rows.num_rows == 0:
        return
    statement = _insertion(connection.dialect, table.name)
    newest: int = connection.execute(_newest_id(table.name)).scalar_one()
    connection.exec_driver_sql(statement, sql_rows(table, rows, newest + 1))


@lru_cache(maxsize=64)
def _insertion(dialect: Dialect, name: str) -> str:
    """The SQL that inserts rows into a table; spelling it takes longer than inserting a few of them."""
    sql = SQL_TABLES[name]
    if dialect.name == "sqlite":
        return str(insert(sql).compile(dialect=dialect, column_keys=[column.name for column in sql.columns]))
    quoted = dialect.identifier_preparer.quote
    names = ", ".join(quoted(column.name) for column in sql.columns)
    return f"INSERT INTO {quoted(name)} ({names}) VALUES ({', '.join(['%s'] * len(sql.columns))})"


@lru_cache(maxsize=64)
def _newest_id(name: str) -> Select[Any]:
    """The highest id given out in a table: of a row, or of the last one that was archived and dropped."""
    newest = select(func.max(SQL_TABLES[name].c.id)).scalar_subquery()
    archived = select(func.max(WATERMARKS.c.archived_id)).where(WATERMARKS.c.table_name == name).scalar_subquery()
    return select(case((newest >= func.coalesce(archived, 0), newest), else_=func.coalesce(archived, 0)))


def watermark(connection: Connection, table: Table) -> int:
    """The highest id whose row is in the archive; 0 when none is."""
    query = select(WATERMARKS.c.archived_id).where(WATERMARKS.c.table_name == table.name)
    return connection.execute(query).scalar() or 0


def move_watermark(connection: Connection, table: Table, archived_id: int) -> None:
    """Declare the rows up to `archived_id` to be copies."""
    connection.execute(delete(WATERMARKS).where(WATERMARKS.c.table_name == table.name))
    connection.execute(insert(WATERMARKS).values(table_name=table.name, archived_id=archived_id))


def last_id(connection: Connection, table: Table, before_ns: int | None = None) -> int:
    """The last row that may be rolled: the newest, or the one before the first row at `before_ns` or later.

    Never below the watermark.
    """
    sql = SQL_TABLES[table.name]
    archived = watermark(connection, table)
    if before_ns is not None:
        late = select(func.min(sql.c.id)).where(sql.c.id > archived, sql.c[table.time] >= before_ns)
        first_late = connection.execute(late).scalar()
        if first_late is not None:
            return first_late - 1
    return max(archived, connection.execute(select(func.max(sql.c.id))).scalar() or 0)


def unarchived(
    connection: Connection, table: Table, names: Sequence[str], *conditions: ColumnElement[bool]
) -> pa.Table:
    """Rows that the archive does not have and that meet the conditions, as the named columns."""
    sql = SQL_TABLES[table.name]
    return rows_where(connection, table, names, sql.c.id > watermark(connection, table), *conditions)


def rows_where(
    connection: Connection, table: Table, names: Sequence[str], *conditions: ColumnElement[bool]
) -> pa.Table:
    """Rows that meet the conditions, in the order of insertion, as the named columns."""
    import pyarrow as pa

    by_name = {c.name: c for c in table.columns}
    columns = [by_name[name] for name in names]
    schema = projected(table, names)
    sql = SQL_TABLES[table.name]
    order = [sql.c.id] if "id" in sql.c else [sql.c[name] for name in table.sort]
    query = select(*(sql.c[name] for name in names)).where(*conditions).order_by(*order)
    pieces = connection.execute(query).partitions(_PIECE)
    return pa.Table.from_batches([arrow_columns(columns, piece, schema) for piece in pieces], schema=schema)


def extent(connection: Connection, table: Table) -> tuple[int, int] | None:
    """The instants of the first and the last row; None without rows."""
    at = SQL_TABLES[table.name].c[table.time]
    first, last = connection.execute(select(func.min(at), func.max(at))).one()
    return None if first is None else (first, last)


def first_ns(connection: Connection, table: Table, run: Run) -> int | None:
    """The instant of a run's first row; None without rows."""
    sql = SQL_TABLES[table.name]
    at = sql.c[table.time]
    query = select(at).where(sql.c.engine_id == run.engine_id, sql.c.run_id == run.run_id)
    return connection.execute(query.order_by(at).limit(1)).scalar()


def records_where(connection: Connection, table: Table, *conditions: ColumnElement[bool]) -> list[Any]:
    """Records that meet the conditions, in the table's order."""
    sql = SQL_TABLES[table.name]
    query = select(*(sql.c[c.name] for c in table.columns)).where(*conditions)
    rows: Sequence[Any] = connection.execute(query.order_by(*(sql.c[name] for name in table.sort))).fetchall()
    return records(table, rows)


def recorded_keys(connection: Connection, table: Table, rows: pa.Table) -> list[tuple[Any, ...]]:
    """The keys of those Arrow rows, all of one run, that the hot store has already."""
    if rows.num_rows == 0:
        return []
    sql = SQL_TABLES[table.name]
    told = set(zip(*(rows.column(name).to_pylist() for name in table.key), strict=True))
    engine_id, run_id = rows.column("engine_id")[0].as_py(), rows.column("run_id")[0].as_py()
    query = select(*(sql.c[name] for name in table.key)).where(sql.c.engine_id == engine_id, sql.c.run_id == run_id)
    return sorted(told.intersection(tuple(row) for row in connection.execute(query)))


def requests_of(connection: Connection, engine_id: str, run_id: str, request_ids: Sequence[str]) -> list[Request]:
    """Those of a run's requests that the hot store has, by their ids."""
    sql = SQL_TABLES[REQUESTS.name]
    of_run = (sql.c.engine_id == engine_id, sql.c.run_id == run_id)
    found: list[Request] = []
    for start in range(0, len(request_ids), _ASKED):
        asked = request_ids[start : start + _ASKED]
        found += records_where(connection, REQUESTS, *of_run, sql.c.request_id.in_(asked))
    return found


def trim(connection: Connection, engine_id: str, before_ns: int) -> None:
    """Drop an engine's archived copies that are older than an instant."""
    for table in ROLLED:
        if table in SAMPLES:
            continue
        sql = SQL_TABLES[table.name]
        copies: Any = sql.c.id <= watermark(connection, table)
        connection.execute(delete(sql).where(copies, sql.c.engine_id == engine_id, sql.c[table.time] < before_ns))


def trim_samples(connection: Connection, keep_ns: int) -> None:
    """Drop archived copies of samples that are more than `keep_ns` older than the newest."""
    for table in SAMPLES:
        sql = SQL_TABLES[table.name]
        newest_ns = connection.execute(select(func.max(sql.c[table.time]))).scalar()
        if newest_ns is not None:
            copies: Any = sql.c.id <= watermark(connection, table)
            connection.execute(delete(sql).where(copies, sql.c[table.time] < newest_ns - keep_ns))
