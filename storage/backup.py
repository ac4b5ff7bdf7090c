"""Backups: a second store with the same rows, made beside whoever records into the first."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import NamedTuple

from ..errors import InputError
from .database import Database
from .errors import StoreError
from .layout import Layout, make_private_folder, open_private_file, sync_folder
from .lock import files_kept
from .manifest import ArchivedFile, all_files
from .source import Source


class Backup(NamedTuple):
    """What a backup holds: files of the archive with their bytes, and how many of them are links, not copies."""

    path: Path
    files: int
    bytes: int
    links: int


def back_up(source: Source, destination: Path, *, copy: bool) -> Backup:
    """Copy the database, then the files that the copy lists; none is removed meanwhile. See `StoreReader.backup`."""
    if destination.exists() and not (destination.is_dir() and not any(destination.iterdir())):
        raise InputError(f"{destination} holds something: back up into a new or empty folder")
    target = Layout(destination.with_name(f".tmp-{destination.name}-{secrets.token_hex(4)}"))
    try:
        done = _write(source, target, copy)
        target.root.replace(destination)
        sync_folder(destination.parent)
    except OSError as error:
        raise StoreError(f"cannot back up into {destination}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(target.root, ignore_errors=True)
    return done._replace(path=destination)


def _write(source: Source, target: Layout, copy: bool) -> Backup:
    make_private_folder(target.root)
    os.close(open_private_file(target.database, os.O_RDWR | os.O_EXCL))
    with files_kept(source.layout.archive):
        source.database.copy_to(target.database)
        database = Database(target.database)
        try:
            with database.reading() as connection:
                files = all_files(connection)
        finally:
            database.close()
        links = sum(_bring(source, target, file, copy) for file in files)
    for folder in {target.root, *((target.root / file.path).parent for file in files)}:
        sync_folder(folder)
    return Backup(target.root, len(files), sum(file.bytes for file in files), links)


def _bring(source: Source, target: Layout, file: ArchivedFile, copy: bool) -> bool:
    """Bring one file over; true when it is a link. One that is missing is named in the store's warnings."""
    original, there = source.layout.root / file.path, target.root / file.path
    for folder in (target.archive, there.parent.parent, there.parent):
        make_private_folder(folder)
    try:
        if not copy:
            os.link(original, there)
            return True
    except FileNotFoundError as error:
        source.warnings.append(f"{original} is not in the backup ({file.rows} rows of {file.date}): {error}")
        return False
    except OSError:
        pass  # another file system, or one that has no links
    with original.open("rb") as read, os.fdopen(open_private_file(there, os.O_WRONLY | os.O_EXCL), "wb") as write:
        shutil.copyfileobj(read, write, 1 << 20)
        write.flush()
        os.fsync(write.fileno())
    return False
