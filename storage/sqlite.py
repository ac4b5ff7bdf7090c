"""The hot store in a SQLite file: what is special about it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event

from .errors import StoreError, StoreNotFoundError

_WRITER_TIMEOUT_S = 30.0
_READER_TIMEOUT_S = 10.0


class Sqlite:
    """A file in WAL mode. Writers queue up (BEGIN IMMEDIATE).

    A transaction that reads first and writes later would fail at once when another writer was faster, whatever the
    timeout: so a writing one says so at its start.
    """

    def __init__(self, file: Path, query_only: bool) -> None:
        self.name = str(file)
        self._file = file
        self._identity = self._stat()
        self.engine = _engine(file, query_only)

    def check(self) -> None:
        """Raise StoreNotFoundError when the file is gone, StoreError when it is another one."""
        if self._stat() != self._identity:
            raise StoreError(f"{self._file} was replaced by another file since it was opened: open the store again")

    def reading(self) -> dict[str, Any]:
        """Options of a connection that reads."""
        return {}

    def version(self, connection: Connection) -> int | None:
        """A number that is another one once somebody else has written; None where the database does not tell."""
        raw = cast(sqlite3.Connection, connection.connection.driver_connection)
        found: int = raw.execute("PRAGMA data_version").fetchone()[0]
        return found

    def writing(self, durable: bool) -> dict[str, Any]:
        """Options of a connection that writes."""
        return {"begin": (f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}", "BEGIN IMMEDIATE")}

    def began_to_write(self, connection: Connection) -> None:
        """Nothing is left to do: the transaction began as one that writes."""

    def claim(self) -> None:
        """The lock of the store's folder is enough: nobody else can reach the file."""

    def dispose(self) -> None:
        """Close every connection."""
        self.engine.dispose()

    def is_full(self, cause: object) -> bool:
        """Whether an error of the driver says that there is no room."""
        return getattr(cause, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database and give its space back, unless somebody reads."""
        patience = f"PRAGMA busy_timeout = {round(1000 * _WRITER_TIMEOUT_S)}"
        self._run("PRAGMA busy_timeout = 0", "PRAGMA wal_checkpoint(TRUNCATE)", patience)

    def vacuum(self) -> None:
        """Write the database anew without the free pages in which dropped rows still stand, and empty the log."""
        self._run("VACUUM")
        self.checkpoint()

    def copy_to(self, file: Path) -> None:
        """Copy the database as it stands at one instant into a file that holds nothing yet."""
        raw = self.engine.raw_connection()
        try:
            with closing(sqlite3.connect(file)) as copy:
                cast(sqlite3.Connection, raw.driver_connection).backup(copy)
        finally:
            raw.close()

    def _run(self, *statements: str) -> None:
        raw = self.engine.raw_connection()
        try:
            cursor = raw.cursor()
            for statement in statements:
                cursor.execute(statement)
        finally:
            raw.close()

    def _stat(self) -> tuple[int, int]:
        try:
            found = self._file.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise StoreNotFoundError(
                f"there is no store at {self._file.parent} (no {self._file.name} in it):"
                " check the path, or make one with `farebox demo` or `farebox run`"
            ) from None
        except OSError as error:
            raise StoreError(f"cannot read {self._file}: {error.strerror}") from None
        return found.st_dev, found.st_ino


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
