"""The store's locks: one event writer at a time, and no file removed under a reader's feet."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .errors import ArchiveBusyError, StoreLockedError
from .layout import open_private_file

_PATIENCE_S = 1.0


class WriterLock:
    """Held by the process that records events; the kernel frees it when that process dies, however it dies."""

    def __init__(self, path: Path) -> None:
        self._descriptor = open_private_file(path, os.O_RDWR)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pid = _read_pid(self._descriptor)
            os.close(self._descriptor)
            raise _locked(path, pid) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let the next writer in."""
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


class Writer(NamedTuple):
    """The process that records into a store; its id where it could be read."""

    pid: int | None


def writer_of(path: Path) -> Writer | None:
    """Who holds a writer's lock; None: nobody does. Raises OSError when the lock cannot be looked at."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return Writer(_read_pid(descriptor))
    finally:
        os.close(descriptor)
    return None


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None


def _locked(path: Path, pid: int | None) -> StoreLockedError:
    who = f"process {pid}" if pid is not None else "another process"
    return StoreLockedError(
        f"{who} is recording into {path.parent}: stop it, or record into another store"
        " (reading and `farebox top` work meanwhile)",
        pid,
    )


@contextmanager
def files_kept(archive: Path) -> Generator[None, None, None]:
    """While this is held, no file of the archive is removed."""
    try:
        descriptor = os.open(archive, os.O_RDONLY)
    except FileNotFoundError:
        yield  # nothing to keep: every file is reported missing when it is read
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def files_removable(archive: Path) -> Generator[None, None, None]:
    """Keep readers out for the moment in which files are swapped; ArchiveBusyError when one goes on reading."""
    descriptor = os.open(archive, os.O_RDONLY)
    try:
        _lock_patiently(descriptor, archive)
        yield
    finally:
        os.close(descriptor)


def _lock_patiently(descriptor: int, archive: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise ArchiveBusyError(f"{archive} is being read: try again later") from None
            time.sleep(0.02)
        else:
            return
