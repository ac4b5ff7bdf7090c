"""The hot store's database: short transactions, and errors in plain words."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import cast
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DatabaseError, IntegrityError

from .errors import StoreError, StoreFullError, StoreNotFoundError

_WRITER_TIMEOUT_S = 30.0
_READER_TIMEOUT_S = 10.0


class Database:
    """A SQLite file in WAL mode. Readers see one state per transaction, writers queue up (BEGIN IMMEDIATE).

    A transaction that reads first and writes later would fail at once when another writer was faster, whatever the
    timeout: so `writing` says so at its start.
    """

    def __init__(self, file: Path, *, query_only: bool = False) -> None:
        self.file = file
        self._identity = self._stat()
        self._engine = _engine(file, query_only)

    @contextmanager
    def reading(self) -> Generator[Connection, None, None]:
        """One consistent view; keep it short, an open one keeps the write-ahead log growing."""
        with self._plain_words("read"), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self, *, durable: bool = False) -> Generator[Connection, None, None]:
        """All of it is written, or nothing.

        A power cut may undo the newest transactions, in order, unless one is `durable`: needed before removing what
        an undone transaction would still count on.
        """
        synchronous = "FULL" if durable else "NORMAL"
        with self._plain_words("write"), self._engine.connect() as connection:
            connection.execution_options(begin=(f"PRAGMA synchronous={synchronous}", "BEGIN IMMEDIATE"))
            with connection.begin():
                yield connection

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database and give its space back, unless somebody reads: nobody waits."""
        with self._plain_words("write"):
            raw = self._engine.raw_connection()
            try:
                cursor = raw.cursor()
                cursor.execute("PRAGMA busy_timeout = 0")
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                cursor.execute(f"PRAGMA busy_timeout = {round(1000 * _WRITER_TIMEOUT_S)}")
            finally:
                raw.close()

    def vacuum(self) -> None:
        """Write the database anew without the free pages in which dropped rows still stand, and empty the log."""
        with self._plain_words("write"):
            raw = self._engine.raw_connection()
            try:
                raw.cursor().execute("VACUUM")
            finally:
                raw.close()
        self.checkpoint()

    def copy_to(self, file: Path) -> None:
        """Copy the database as it stands at one instant, beside whoever writes, into a file that holds nothing yet."""
        with self._plain_words("copy"):
            raw = self._engine.raw_connection()
            try:
                with closing(sqlite3.connect(file)) as copy:
                    cast(sqlite3.Connection, raw.driver_connection).backup(copy)
            finally:
                raw.close()

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def _stat(self) -> tuple[int, int]:
        try:
            found = self.file.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise StoreNotFoundError(
                f"there is no store at {self.file.parent} (no {self.file.name} in it):"
                " check the path, or make one with `farebox demo` or `farebox run`"
            ) from None
        except OSError as error:
            raise StoreError(f"cannot read {self.file}: {error.strerror}") from None
        return found.st_dev, found.st_ino

    @contextmanager
    def _plain_words(self, verb: str) -> Generator[None, None, None]:
        if self._stat() != self._identity:
            raise StoreError(f"{self.file} was replaced by another file since it was opened: open the store again")
        try:
            yield
        except IntegrityError:
            raise
        except (DatabaseError, sqlite3.DatabaseError) as error:
            self._stat()
            cause = error.orig if isinstance(error, DatabaseError) else error
            if getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
                raise StoreFullError(f"no room to {verb} {self.file}: its disk is full") from error
            raise StoreError(f"cannot {verb} {self.file}: {cause}") from error


def _engine(file: Path, query_only: bool) -> Engine:
    url = URL.create("sqlite", database=f"file:{quote(str(file.absolute()))}", query=_open_mode(file) | {"uri": "true"})
    timeout = _READER_TIMEOUT_S if query_only else _WRITER_TIMEOUT_S
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": timeout, "isolation_level": None})
    event.listen(engine, "connect", _only_queries if query_only else _rare_checkpoints)
    event.listen(engine, "begin", _begin)
    return engine


def _open_mode(file: Path) -> dict[str, str]:
    """Never create a database by opening it; on read-only media read what is there."""
    if os.access(file, os.W_OK) and os.access(file.parent, os.W_OK):
        return {"mode": "rw"}
    if file.with_name(file.name + "-wal").exists():
        return {"mode": "ro"}
    return {"mode": "ro", "immutable": "1"}


def _only_queries(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA query_only=ON")


def _rare_checkpoints(connection: sqlite3.Connection, _record: object) -> None:
    """Pages of indexes are written again and again: more of that stays in the log, of which 16 MiB are kept."""
    connection.execute("PRAGMA wal_autocheckpoint=4000")


def _begin(connection: Connection) -> None:
    """Not through SQLAlchemy, to which each of these would be a statement as costly as any."""
    raw = cast(sqlite3.Connection, connection.connection.driver_connection)
    for statement in connection.get_execution_options().get("begin", ("BEGIN",)):
        raw.execute(statement)
