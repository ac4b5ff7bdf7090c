"""Rates in the hot store; they are settings, so they never move to the archive."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert

from ..events import RATES, Rate
from .hot import records_where
from .rows import record_values
from .tables import SQL_TABLES

_SQL = SQL_TABLES[RATES.name]


def all_rates(connection: Connection) -> list[Rate]:
    """Every rate, by GPU type and start."""
    return records_where(connection, RATES)


def put_rate(connection: Connection, rate: Rate) -> None:
    """Insert a rate, or replace the one of the same GPU type and start."""
    connection.execute(delete(_SQL).where(_SQL.c.gpu_type == rate.gpu_type, _SQL.c.from_ns == rate.from_ns))
    connection.execute(insert(_SQL).values(**record_values(RATES, rate)))
