"""How far each spool is recorded: kept in the store, so that it moves in the transaction that records the events."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select

from ...events import Spooled
from ..tables import SPOOLS


def get_place(connection: Connection, writer: str) -> Spooled | None:
    """Up to where a writer's spool is recorded; None: nothing of it is."""
    c = SPOOLS.c
    row = connection.execute(select(c.writer, c.segment, c.offset).where(c.writer == writer)).first()
    return None if row is None else Spooled(*row)


def forget_places(connection: Connection, writer: str) -> None:
    """Forget the places of a writer's spool; one of the same name begins anew."""
    name = SPOOLS.c.writer
    connection.execute(delete(SPOOLS).where((name == writer) | name.startswith(f"{writer}/", autoescape=True)))


def put_place(connection: Connection, place: Spooled) -> None:
    """Record up to where a spool is recorded."""
    connection.execute(delete(SPOOLS).where(SPOOLS.c.writer == place.writer))
    connection.execute(insert(SPOOLS).values(**place._asdict()))
