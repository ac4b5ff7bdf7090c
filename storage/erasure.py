"""Erasure: a tenant's request rows leave hot and archive for good; shares and the ledger, the sums, stay."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import delete

from ..events import REQUESTS
from .archive import replace_files, staging
from .damage import scan_checked
from .database import Database
from .errors import StoreError
from .files import open_files
from .layout import Layout
from .manifest import ArchivedFile, files_of
from .tables import SQL_TABLES


def erase_requests(layout: Layout, database: Database, tenant_id: str) -> int:
    """Remove the requests of a tenant when hot holds nothing that the archive lacks; returns how many rows went.

    Every file is swapped in a transaction of its own, so a crash leaves some of them to the next call. Raises
    StoreError that names files which cannot be read, once the others are done, and ArchiveBusyError while somebody
    goes on reading.
    """
    with database.reading() as connection:
        files = files_of(connection, REQUESTS.name)
    erased, unread = 0, list[str]()
    for file in files:
        try:
            kept = _without(layout, file, tenant_id)
        except (OSError, pa.ArrowException) as error:
            unread.append(f"{file.path} ({error})")
            continue
        if kept.num_rows < file.rows:
            _swap(layout, database, file, kept)
            erased += file.rows - kept.num_rows
    _erase_copies(database, tenant_id)
    if unread:
        raise StoreError(
            f"{erased} requests of {tenant_id} were erased, but these files cannot be read and may hold more:"
            f" {', '.join(unread)}"
        )
    return erased


def _without(layout: Layout, file: ArchivedFile, tenant_id: str) -> pa.Table:
    others = pc.field("tenant_id") != tenant_id
    batches = scan_checked(open_files(layout), file, REQUESTS.schema, None, others)
    return pa.Table.from_batches(batches, schema=REQUESTS.schema)


def _swap(layout: Layout, database: Database, file: ArchivedFile, kept: pa.Table) -> None:
    with staging(layout, database) as staged:
        staged.add(REQUESTS, kept)
        replace_files(layout, database, [file], staged)


def _erase_copies(database: Database, tenant_id: str) -> None:
    """Drop hot's copies, and what SQLite keeps of dropped rows in free pages and in its log."""
    sql = SQL_TABLES[REQUESTS.name]
    with database.writing(durable=True) as connection:
        connection.execute(delete(sql).where(sql.c.tenant_id == tenant_id))
    database.vacuum()
