"""The hot store's database: short transactions, and errors in plain words."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection
from sqlalchemy.exc import DatabaseError, IntegrityError

from .errors import StoreError, StoreFullError
from .layout import Layout
from .sqlite import Sqlite


class Database:
    """A SQLite file, or the PostgreSQL that `database.url` beside it names.

    Readers see one state per transaction, writers queue up.
    """

    def __init__(self, file: Path, *, query_only: bool = False) -> None:
        self.file = file
        url = Layout(file.parent).read_url()
        if url is None:
            self._backend = Sqlite(file, query_only)
        else:
            from .postgres import Postgres

            self._backend = Postgres(url, query_only)

    @contextmanager
    def reading(self) -> Generator[Connection, None, None]:
        """One consistent view; keep it short, an open one keeps the write-ahead log growing."""
        backend = self._backend
        with self._plain_words("read"), backend.engine.connect() as connection:
            connection.execution_options(**backend.reading())
            with connection.begin():
                yield connection

    def version(self) -> int | None:
        """A number that stays the same as long as nobody else writes; None where the database does not tell.

        For a reader of one thread, whose transactions share a connection.
        """
        with self.reading() as connection:
            return self._backend.version(connection)

    @contextmanager
    def writing(self, *, durable: bool = False) -> Generator[Connection, None, None]:
        """All of it is written, or nothing.

        A power cut may undo the newest transactions, in order, unless one is `durable`: needed before removing what
        an undone transaction would still count on.
        """
        backend = self._backend
        with self._plain_words("write"), backend.engine.connect() as connection:
            connection.execution_options(**backend.writing(durable))
            with connection.begin():
                backend.began_to_write(connection)
                yield connection

    def claim(self) -> None:
        """Be the one that records, until closed; StoreLockedError when another process is."""
        with self._plain_words("claim"):
            self._backend.claim()

    def checkpoint(self) -> None:
        """Give the space of a write-ahead log back, unless somebody reads: nobody waits."""
        with self._plain_words("write"):
            self._backend.checkpoint()

    def vacuum(self) -> None:
        """Leave nothing of dropped rows on the disk."""
        with self._plain_words("write"):
            self._backend.vacuum()

    def copy_to(self, file: Path) -> None:
        """Copy the database as it stands at one instant, beside whoever writes, into a file that holds nothing yet."""
        with self._plain_words("copy"):
            self._backend.copy_to(file)

    def close(self) -> None:
        """Close every connection."""
        self._backend.dispose()

    @contextmanager
    def _plain_words(self, verb: str) -> Generator[None, None, None]:
        backend = self._backend
        backend.check()
        try:
            yield
        except IntegrityError:
            raise
        except (DatabaseError, sqlite3.DatabaseError) as error:
            backend.check()
            cause = error.orig if isinstance(error, DatabaseError) else error
            if backend.is_full(cause):
                raise StoreFullError(f"no room to {verb} {backend.name}: its disk is full") from error
            raise StoreError(f"cannot {verb} {backend.name}: {cause}") from error
