"""Whether a store can be used where it lies: readable, on a local disk with room, its log in bounds."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ...errors import FareboxError
from ...storage.layout import Layout
from ...storage.lock import writer_of
from ...storage.mounts import file_system, is_network
from ...storage.store import Store, open_store
from .check import Check

_MOST_WAL = 64 * 2**20
_LEAST_FREE = 2**30
_MIB = 2**20


def open_readable(path: Path) -> tuple[Store | None, Check]:
    """The store, if it can be read, and how that went."""
    try:
        store = open_store(path)
        runs = len(store.runs())
    except FareboxError as error:
        return None, Check("store", "bad", str(error))
    return store, Check("store", "ok", f"{path} can be read; {runs} run{'' if runs == 1 else 's'}")


def check_place(path: Path) -> list[Check]:
    """The folder of a store: who records into it, and the disk below.

    With the hot part on a server, the folder has the archive only, which any file system can hold.
    """
    layout = Layout(path)
    if layout.read_url() is not None:
        return [_writer(layout), _room(path)]
    return [_writer(layout), _log(layout), _file_system(path), _room(path)]


def check_archive(store: Store) -> Check:
    """Whether every file of the archive is there; whether each is whole shows when it is read."""
    try:
        missing = store.missing_files()
    except OSError as error:
        return Check("archive", "bad", f"it cannot be looked at: {error}")
    if missing:
        says = f"{len(missing)} files are missing, {missing[0]} the first of them"
        return Check("archive", "bad", says, "bring them back from a backup; bills of that time lack their rows")
    return Check("archive", "ok", "every file is there")


def _writer(layout: Layout) -> Check:
    try:
        writer = writer_of(layout.lock)
    except OSError as error:
        return Check("writer", "note", f"cannot tell who records: {layout.lock}: {error.strerror}")
    if writer is not None:
        return Check("writer", "ok", f"process {writer.pid or 'n/a'} records into it")
    if not os.access(layout.root, os.W_OK):
        return Check(
            "writer", "note", f"this user cannot write into {layout.root}: it can be read, and nothing be recorded",
            "to record, give this user the right to write there (or mount it for writing)",
        )  # fmt: skip
    return Check("writer", "ok", "nobody records into it now")


def _log(layout: Layout) -> Check:
    size = layout.wal.stat().st_size if layout.wal.exists() else 0
    says = f"write-ahead log of {size // _MIB} MiB"
    if size <= _MOST_WAL:
        return Check("log", "ok", says)
    return Check("log", "bad", f"{says}: somebody keeps a reading transaction open", "end long readers of the database")


def _file_system(path: Path) -> Check:
    kind = file_system(path)
    if kind is None:
        return Check("disk", "note", "cannot tell which file system it is on")
    if is_network(kind):
        return Check(
            "disk", "bad", f"it is on a network file system ({kind}), where SQLite's locks cannot be trusted;"
            " Farebox records there without a write-ahead log, so screens and recorder wait for each other",
            "keep the store on a local disk, and copy its archive/ to the share",
        )  # fmt: skip
    return Check("disk", "ok", f"on {kind}")


def _room(path: Path) -> Check:
    free = shutil.disk_usage(path).free
    says = f"{free // _MIB} MiB free"
    if free < _LEAST_FREE:
        return Check("room", "bad", says, "make room before recording stops: below 1 GiB it can be a matter of hours")
    return Check("room", "ok", says)
