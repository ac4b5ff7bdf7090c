"""The hot store's SQL tables, derived from the event tables, and its own bookkeeping."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Text,
    UniqueConstraint,
    false,
)
from sqlalchemy import Table as SqlTable

from ..events import (
    GPU_SAMPLES,
    HOST_SAMPLES,
    INTERVALS,
    LEDGER,
    REQUESTS,
    RUNS,
    SETTING_TABLES,
    SHARES,
    STEPS,
    Table,
)

METADATA = MetaData()

SAMPLES = (GPU_SAMPLES, HOST_SAMPLES)
"""Tables of readings that belong to no run."""
ROLLED = (STEPS, SHARES, REQUESTS, LEDGER, INTERVALS, *SAMPLES)
"""Tables whose rows move from hot to archive; runs and settings are few and stay."""

_CHECKED = (STEPS, REQUESTS, INTERVALS)
_ROW_ID = BigInteger().with_variant(Integer(), "sqlite")


def _columns(table: Table) -> list[Column[object]]:
    return [Column(c.name, BigInteger() if c.kind == "int" else Text(), nullable=c.nullable) for c in table.columns]


def _rolled(table: Table) -> SqlTable:
    """A table whose `id` counts its rows in the order of insertion."""
    unique = [UniqueConstraint(*table.key)] if table in _CHECKED else []
    return SqlTable(
        table.name,
        METADATA,
        Column("id", _ROW_ID, primary_key=True, autoincrement=False),
        *_columns(table),
        *unique,
        Index(f"{table.name}_by_time", table.time),
    )


def _keyed(table: Table, *extra: Column[bool]) -> SqlTable:
    return SqlTable(table.name, METADATA, *_columns(table), *extra, PrimaryKeyConstraint(*table.key))


SQL_TABLES: dict[str, SqlTable] = {t.name: _rolled(t) for t in ROLLED}
SQL_TABLES[RUNS.name] = _keyed(RUNS, Column("archived", Boolean(), nullable=False, server_default=false()))
SQL_TABLES.update({t.name: _keyed(t) for t in SETTING_TABLES})

FILES = SqlTable(
    "files",
    METADATA,
    Column("path", Text(), primary_key=True),
    Column("table_name", Text(), nullable=False),
    Column("date", Text(), nullable=False),
    Column("rows", BigInteger(), nullable=False),
    Column("bytes", BigInteger(), nullable=False),
    Column("min_ns", BigInteger(), nullable=False),
    Column("max_ns", BigInteger(), nullable=False),
    Column("foot_crc", BigInteger()),
    Index("files_by_date", "table_name", "date"),
)

PROGRESS = SqlTable(
    "progress",
    METADATA,
    Column("engine_id", Text(), primary_key=True),
    Column("run_id", Text(), primary_key=True),
    Column("steps", BigInteger(), nullable=False),
    Column("requests", BigInteger(), nullable=False),
    Column("covered_ns", BigInteger(), nullable=False),
)

WATERMARKS = SqlTable(
    "watermarks",
    METADATA,
    Column("table_name", Text(), primary_key=True),
    Column("archived_id", BigInteger(), nullable=False),
)

SPOOLS = SqlTable(
    "spools",
    METADATA,
    Column("writer", Text(), primary_key=True),
    Column("segment", BigInteger(), nullable=False),
    Column("offset", BigInteger(), nullable=False),
)

SCHEMA_VERSION = SqlTable("schema_version", METADATA, Column("version", Integer(), nullable=False))
