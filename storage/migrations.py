"""Migrations: a new store gets the newest tables, an older one is brought up step by step."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import Connection, delete, insert, inspect, select

from .database import Database
from .errors import StoreError, StoreNotFoundError
from .layout import Layout, open_private_file
from .tables import METADATA, SCHEMA_VERSION
from .versions import BASE, MIGRATIONS, Migration


def create_database(file: Path) -> None:
    """Make an empty, private database; one that exists is left as it is."""
    os.close(open_private_file(file, os.O_RDWR))
    if file.stat().st_size == 0:
        choose_journal(file)


def choose_journal(file: Path) -> None:
    """Have a write-ahead log, unless the file lies on a network, whose machines do not share the memory that it needs.

    A store that was moved is changed when its recorder opens it; where a reader prevents that, the next time.
    """
    from .mounts import file_system, is_network

    wanted = "delete" if is_network(file_system(file)) else "wal"
    with closing(sqlite3.connect(file, timeout=1)) as connection, suppress(sqlite3.OperationalError):
        if connection.execute("PRAGMA journal_mode").fetchone() != (wanted,):
            connection.execute(f"PRAGMA journal_mode={wanted}")


def migrate(database: Database, migrations: Mapping[int, Migration] = MIGRATIONS) -> None:
    """Bring a store to the newest version that `migrations` knows; refuses a newer one."""
    newest = max(migrations, default=BASE)
    with database.writing() as connection:
        found = _read_version(connection)
        if found is None:
            METADATA.create_all(connection)
            _stamp(connection, newest)
            return
    _refuse_newer(database, found, newest)
    for version in sorted(version for version in migrations if version > found):
        with database.writing() as connection:
            migrations[version](connection)
            _stamp(connection, version)


def open_checked(file: Path, *, query_only: bool = False) -> Database:
    """Open a store's database for reading; raises as `check_version` does."""
    database = Database(file, query_only=query_only)
    try:
        check_version(database)
    except BaseException:
        database.close()
        raise
    return database


def open_migrated(file: Path) -> Database:
    """Open a store's database for recording, making it or bringing it up to date; raises as `migrate` does."""
    if Layout(file.parent).read_url() is None:
        if file.exists():
            choose_journal(file)
        else:
            _make(file)
    return _migrated(file)


def _make(file: Path) -> None:
    """Make a database that readers see only when it is complete. The caller holds the store's lock."""
    unborn = file.with_name(f".tmp-{file.name}")
    for leftover in file.parent.glob(f"{unborn.name}*"):
        leftover.unlink()
    create_database(unborn)
    _migrated(unborn).close()
    unborn.rename(file)


def _migrated(file: Path) -> Database:
    database = Database(file)
    try:
        migrate(database)
    except BaseException:
        database.close()
        raise
    return database


def check_version(database: Database, migrations: Mapping[int, Migration] = MIGRATIONS) -> None:
    """Refuse to read what is not a store, or is one of another schema version."""
    newest = max(migrations, default=BASE)
    with database.reading() as connection:
        found = _read_version(connection)
    if found is None:
        raise StoreNotFoundError(f"{database.file} is not a Farebox store (it has no schema version): check the path")
    _refuse_newer(database, found, newest)
    if found < newest:
        raise StoreError(
            f"{database.file} was written by an older Farebox (schema {found}, this one reads {newest}):"
            f" `farebox archive {database.file.parent}` brings it up to date"
        )


def _read_version(connection: Connection) -> int | None:
    if not inspect(connection).has_table(SCHEMA_VERSION.name):
        return None
    return connection.execute(select(SCHEMA_VERSION.c.version)).scalar()


def _stamp(connection: Connection, version: int) -> None:
    connection.execute(delete(SCHEMA_VERSION))
    connection.execute(insert(SCHEMA_VERSION).values(version=version))


def _refuse_newer(database: Database, found: int, newest: int) -> None:
    if found > newest:
        raise StoreError(
            f"{database.file} was written by a newer Farebox (schema {found}, this one knows {newest}):"
            " upgrade Farebox here"
        )
