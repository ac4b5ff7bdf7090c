"""SQL over a store: DuckDB on its tables, unable to write or to look at anything else."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple

import duckdb
import pyarrow as pa

from ..errors import InputError
from ..events import EVENT_TABLES, SETTING_TABLES, Table
from .damage import damaged, wrong_size
from .dataset import Tables, tables_for
from .errors import StoreError
from .files import open_files
from .lock import files_kept
from .query import Query
from .source import Source
from .tables import ROLLED

MEMORY = "512MiB"
"""What DuckDB may take; what needs more goes through a temporary folder. Arrow's readers take about as much."""
_BATCH = 65_536
_READING = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
_MISTAKES = (duckdb.ParserException, duckdb.BinderException, duckdb.CatalogException, duckdb.PermissionException)
_TABLES = {table.name: table for table in (*EVENT_TABLES, *SETTING_TABLES)}


class Select(NamedTuple):
    """One SELECT on the tables of a store, in [start, end) of time and of one engine; None sets no limit."""

    text: str
    start_ns: int | None = None
    end_ns: int | None = None
    engine_id: str | None = None

    def queries(self) -> list[Query]:
        """What it reads: the tables that its text names; all of them when that names none, as SHOW TABLES does."""
        named = [table for name, table in _TABLES.items() if re.search(rf"\b{name}\b", self.text, re.IGNORECASE)]
        return [self._query(table) for table in named or _TABLES.values()]

    def _query(self, table: Table) -> Query:
        if table not in ROLLED:
            return Query(table)
        return Query(table, None, self.start_ns, self.end_ns, self.engine_id)


def run(source: Source, select: Select) -> pa.RecordBatchReader:
    """The answer, batch by batch. Files that cannot be read are left out and named in its warnings.

    Raises InputError when the text is no SELECT that DuckDB understands, StoreError when a file turns out to be damaged
    after rows of it were told.
    """
    skipped: set[str] = set()
    while True:
        batches = _batches(source, select, skipped)
        try:
            first = next(batches)
        except _DamagedError as found:
            skipped |= found.paths
        else:
            return pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))


def lend(source: Source, select: Select) -> duckdb.DuckDBPyRelation:
    """The answer as a relation that reads when it is asked; what it needs is let go when the store is closed."""
    connection, _ = source.lent.enter_context(session(source, select))
    try:
        return connection.sql(checked(connection, select.text))
    except _MISTAKES as error:
        raise InputError(str(error)) from None


def text_of(query: Query, rider: str | None) -> str:
    """The SELECT for rows of one table; for steps also by the tenant who rode in them."""
    at = query.table.time
    limits = [f"{at} >= {query.start_ns}"] if query.start_ns is not None else []
    limits += [f"{at} < {query.end_ns}"] if query.end_ns is not None else []
    matches = [*query.matches, *([("engine_id", query.engine_id)] if query.engine_id is not None else [])]
    limits += [f"{name} = {_literal(text)}" for name, text in matches]
    text = f"SELECT {', '.join(query.names)} FROM {query.table.name}"
    if rider is not None:
        key = "engine_id, run_id, step_seq"
        text += f" SEMI JOIN (SELECT {key} FROM shares WHERE tenant_id = {_literal(rider)}) USING ({key})"
    return f"{text} WHERE {' AND '.join(limits)}" if limits else text


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def session(
    source: Source, select: Select, skipped: Collection[str] = ()
) -> Generator[tuple[duckdb.DuckDBPyConnection, Tables], None, None]:
    """A locked connection whose tables are those that a SELECT names, as they stand now."""
    layout, database, warnings = source.layout, source.database, source.warnings
    with files_kept(open_files(layout).lock), tempfile.TemporaryDirectory(prefix="farebox-") as spill:
        tables = tables_for(layout, database, select.queries(), skipped)
        bad = wrong_size(layout, tables.files, warnings)
        if bad:
            tables = tables_for(layout, database, select.queries(), bad | set(skipped))
        with _locked_connection(spill) as connection:
            for name, dataset in tables.datasets.items():
                connection.register(name, dataset)
            yield connection, tables


def checked(connection: duckdb.DuckDBPyConnection, text: str) -> str:
    """The text, if it is one statement that only reads; else InputError."""
    try:
        statements = connection.extract_statements(text)
    except duckdb.Error as error:
        raise InputError(str(error)) from None
    if len(statements) != 1 or statements[0].type not in _READING:
        raise InputError("one SELECT, please: a store is read with SQL, never changed")
    return text


class _DamagedError(Exception):
    """Nothing was told yet, and these files cannot be read."""

    def __init__(self, paths: set[str]) -> None:
        self.paths = paths


def _batches(source: Source, select: Select, skipped: Collection[str] = ()) -> Iterator[pa.RecordBatch]:
    """The answer; at least one batch, be it empty."""
    has_told = False
    with session(source, select, skipped) as (connection, tables):
        try:
            reader = connection.sql(checked(connection, select.text)).to_arrow_reader(_BATCH)
            yield next(reader, None) or pa.RecordBatch.from_pylist([], schema=reader.schema)
            has_told = True
            yield from reader
        except _MISTAKES as error:
            raise InputError(str(error)) from None
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            found = damaged(source.layout, tables.files, source.warnings)
            if found and not has_told:
                raise _DamagedError(found) from error
            if found:
                names = ", ".join(sorted(found))
                raise StoreError(f"{names} cannot be read, and part of the answer was told: ask again") from None
            raise InputError(str(error)) from None


def _locked_connection(spill: str) -> duckdb.DuckDBPyConnection:
    """A connection that reads nothing but what is registered, downloads nothing, and stays so."""
    connection = duckdb.connect(
        ":memory:",
        config={
            "enable_external_access": "false",
            "python_enable_replacements": "false",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "memory_limit": MEMORY,
            "temp_directory": spill,
            "preserve_insertion_order": "false",
        },
    )
    connection.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false; SET lock_configuration = true")
    return connection
