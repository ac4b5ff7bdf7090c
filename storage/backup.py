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
from .files import Files, open_files
from .layout import Layout, make_private_folder, open_private_file, sync_folder
from .local_files import LocalFiles
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
    originals, copies = open_files(source.layout), LocalFiles(target.archive)
    with files_kept(originals.lock):
        source.database.copy_to(target.database)
        database = Database(target.database)
        try:
            with database.reading() as connection:
                files = all_files(connection)
        finally:
            database.close()
        links = sum(_bring(originals, copies, file, copy, source.warnings) for file in files)
    for folder in {target.root, *(Path(copies.at(file.path)).parent for file in files)}:
        sync_folder(folder)
    return Backup(target.root, len(files), sum(file.bytes for file in files), links)


def _bring(originals: Files, copies: LocalFiles, file: ArchivedFile, copy: bool, warnings: list[str]) -> bool:
    """Bring one file over; true when it is a link. One that is missing is named in the store's warnings."""
    try:
        if not copy and not originals.is_remote and _link(Path(originals.at(file.path)), Path(copies.at(file.path))):
            return True
        with originals.filesystem.open_input_stream(originals.at(file.path)) as read, copies.create(file.path) as write:
            shutil.copyfileobj(read, write, 1 << 20)
        copies.publish([file.path])
    except FileNotFoundError as error:
        warnings.append(f"{originals.name(file.path)} is not in the backup ({file.rows} rows of {file.date}): {error}")
        copies.discard([file.path])
    return False


def _link(original: Path, there: Path) -> bool:
    """Link a file; false where it cannot be done: on another file system, or one that has no links."""
    for folder in (there.parent.parent.parent, there.parent.parent, there.parent):
        make_private_folder(folder)
    try:
        os.link(original, there)
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return True
