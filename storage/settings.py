"""Settings: what people declare (rates, capacities, tenants, prices, budgets) and the closings. They never move."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, or_, update

from ..events import CHANGES, CLOSINGS, SETTING_TABLES, Closing, Table
from .errors import ClosedError
from .hot import records_where
from .layout import instant_text
from .rows import record_values
from .tables import SQL_TABLES

KEPT = (CLOSINGS, CHANGES)
"""Tables whose records nobody removes."""


class Settings:
    """The settings as one transaction sees them: what is read stays true until what is put is written."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def all(self, table: Table) -> list[Any]:
        """Every record of one of the SETTING_TABLES, in the table's order; ValueError for another table."""
        return records_where(self._connection, _known(table))

    def put(self, table: Table, record: tuple[Any, ...]) -> None:
        """Insert a record, or replace the one of the same key.

        A closing is never replaced: ClosedError when a period that shares time with it is closed, and stands.
        """
        values = record_values(_known(table), record)
        if table is CLOSINGS:
            self._refuse_closed(Closing._make(record))
        same = _has_key(table, [values[name] for name in table.key])
        self._connection.execute(delete(SQL_TABLES[table.name]).where(same))
        self._connection.execute(insert(SQL_TABLES[table.name]).values(**values))

    def remove(self, table: Table, key: Sequence[Any]) -> bool:
        """Remove the record of a key (values in the order of `table.key`); False when there is none."""
        if table in KEPT:
            raise ClosedError(f"{table.name} are history and stay")
        done = self._connection.execute(delete(SQL_TABLES[_known(table).name]).where(_has_key(table, key)))
        return done.rowcount > 0

    def reopen(self, closing: Closing, at_ns: int, reason: str) -> Closing:
        """Say that a closing no longer stands since `at_ns` (UTC); its bill stays. Returns it as it is now.

        Raises ClosedError unless it stands.
        """
        sql, key = SQL_TABLES[CLOSINGS.name], [getattr(closing, name) for name in CLOSINGS.key]
        stands = and_(_has_key(CLOSINGS, key), sql.c.reopened_ns.is_(None))
        done = self._connection.execute(update(sql).where(stands).values(reopened_ns=at_ns, reason=reason))
        if not done.rowcount:
            raise ClosedError(
                f"{closing.period} ({closing.tz}) version {closing.version} is not closed: nothing to open"
            )
        return closing._replace(reopened_ns=at_ns, reason=reason)

    def _refuse_closed(self, closing: Closing) -> None:
        sql = SQL_TABLES[CLOSINGS.name].c
        stands = and_(sql.reopened_ns.is_(None), sql.from_ns < closing.to_ns, sql.to_ns > closing.from_ns)
        same = _has_key(CLOSINGS, [getattr(closing, name) for name in CLOSINGS.key])
        shared = records_where(self._connection, CLOSINGS, or_(stands, same))
        if shared:
            raise ClosedError(
                f"{closing.period} ({closing.tz}) cannot be closed: {shared[0].period} ({shared[0].tz}), which shares"
                f" time with it, was closed at {instant_text(shared[0].closed_ns)}"
            )


def _known(table: Table) -> Table:
    if table not in SETTING_TABLES:
        raise ValueError(f"{table.name} holds events, not settings: append a batch")
    return table


def _has_key(table: Table, key: Sequence[Any]) -> ColumnElement[bool]:
    columns = SQL_TABLES[table.name].c
    return and_(*(columns[name] == value for name, value in zip(table.key, key, strict=True)))
