"""The hot store in PostgreSQL: what is special about it. The driver is in the extra `postgres`."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError

from ..errors import InputError
from .errors import StoreError, StoreLockedError
from .layout import Layout, make_private_folder, open_private_file

_WRITERS = 0x66617265
"""The advisory lock that writing transactions take, so that they queue up as in SQLite."""
_RECORDER = _WRITERS + 1
"""The advisory lock of the one process that records events."""
_HOLDER = """
    SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND classid = 0 AND objid = :recorder AND granted
"""
_NAME = "farebox, process "
_DISK_FULL = "53100"


def keep_in(root: Path, url: str) -> None:
    """Have a PostgreSQL hold the recent rows and the settings of a store that is not there yet; its folder is made.

    Raises InputError for a URL that names no PostgreSQL, StoreError when the server cannot be reached or the store has
    its rows elsewhere.
    """
    layout = Layout(root)
    if layout.read_url() == url:
        return
    if layout.exists:
        raise StoreError(f"{root} has its recent rows elsewhere already: choose another folder")
    server = Postgres(url, query_only=True)
    try:
        server.engine.connect().close()
    except OperationalError as error:
        raise StoreError(f"cannot reach {server.name}: {error.orig}") from None
    finally:
        server.dispose()
    make_private_folder(root)
    with os.fdopen(open_private_file(layout.url, os.O_WRONLY | os.O_EXCL), "w") as file:
        file.write(f"{url}\n")


class Postgres:
    """A database on a server, which holds one store. Readers see one snapshot, writers queue up."""

    def __init__(self, url: str, query_only: bool) -> None:
        """Raises InputError for a URL that names no PostgreSQL, or when the driver is not installed."""
        self._query_only = query_only
        self._claim: Connection | None = None
        try:
            made = make_url(url)
            self.name = made.render_as_string(hide_password=True)
            if made.get_backend_name() != "postgresql":
                raise InputError(f"{self.name} is no PostgreSQL: write postgresql+psycopg://USER@HOST/DATABASE")
            who = {"application_name": f"{_NAME}{os.getpid()} on {socket.gethostname()}"}
            self.engine = create_engine(made, hide_parameters=True, pool_pre_ping=True, connect_args=who)
        except ArgumentError:
            raise InputError("the database's URL cannot be read: postgresql+psycopg://USER@HOST/DATABASE") from None
        except (ImportError, NoSuchModuleError) as error:
            raise InputError(f"{error}: pip install 'farebox[postgres]'") from None

    def check(self) -> None:
        """A server says by itself when it is gone."""

    def reading(self) -> dict[str, Any]:
        """Options of a connection that reads: one snapshot for all of a transaction."""
        return {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}

    def version(self, connection: Connection) -> int | None:
        """Not told."""
        return None

    def writing(self, durable: bool) -> dict[str, Any]:
        """Options of a connection that writes; every commit outlives a power cut, as the server is set up."""
        return {"isolation_level": "READ COMMITTED", "postgresql_readonly": self._query_only}

    def began_to_write(self, connection: Connection) -> None:
        """Wait for the other writers; what is read from now on stays true until the end."""
        connection.execute(text("SELECT pg_advisory_xact_lock(:writers)"), {"writers": _WRITERS})

    def claim(self) -> None:
        """Be the one that records, on whatever host, until this is disposed of; else StoreLockedError."""
        connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        if connection.execute(text("SELECT pg_try_advisory_lock(:recorder)"), {"recorder": _RECORDER}).scalar():
            connection.detach()
            self._claim = connection
            return
        with connection:
            who = str(connection.execute(text(_HOLDER), {"recorder": _RECORDER}).scalar() or "process n/a")
        pid = who.removeprefix(_NAME).split()[0]
        raise StoreLockedError(f"{who} is recording into {self.name}", int(pid) if pid.isdigit() else None)

    def dispose(self) -> None:
        """Close every connection."""
        if self._claim is not None:
            self._claim.close()
        self.engine.dispose()

    def is_full(self, cause: object) -> bool:
        """Whether an error of the driver says that there is no room."""
        return getattr(cause, "sqlstate", None) == _DISK_FULL

    def checkpoint(self) -> None:
        """The server sees to its log itself."""

    def vacuum(self) -> None:
        """Write the tables anew without dropped rows; the server's own log forgets them in its time."""
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM FULL"))

    def copy_to(self, file: Path) -> None:
        """A server has its own tools for that."""
        raise StoreError(f"{self.name} is backed up with pg_dump; the archive's folder is copied as it is")
