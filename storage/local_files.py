"""An archive in a folder: files are written aside, synced and renamed."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from pyarrow.fs import LocalFileSystem

from .files import OUR_NAME, Files, of_archive, within_archive
from .layout import make_private_folder, open_private_file, sync_folder, temp_of

_BUFFER = 1 << 20


class LocalFiles(Files):
    """Files below a folder, for their owner only."""

    is_remote = False

    def __init__(self, folder: Path) -> None:
        self.filesystem = LocalFileSystem()
        self.lock = self._folder = folder

    def at(self, path: str) -> str:
        """Where a file is."""
        return str(self._file(path))

    def name(self, path: str) -> str:
        """Where a file is."""
        return self.at(path)

    def size(self, path: str) -> int:
        """Bytes of a file; FileNotFoundError without one."""
        return self._file(path).stat().st_size

    def create(self, path: str) -> BinaryIO:
        """A private file under a temporary name, which is synced when it is closed."""
        temporary = temp_of(self._file(path))
        for folder in (self._folder, temporary.parent.parent, temporary.parent):
            make_private_folder(folder)
        return _SyncedFile(io.FileIO(open_private_file(temporary, os.O_WRONLY | os.O_EXCL), "wb"), _BUFFER)

    def publish(self, paths: Iterable[str]) -> None:
        """Rename files, and make their new names last."""
        files = [self._file(path) for path in paths]
        for file in files:
            os.replace(temp_of(file), file)  # noqa: PTH105
        for folder in {file.parent for file in files}:
            sync_folder(folder)

    def remove(self, paths: Iterable[str]) -> None:
        """Remove files; one that is gone already is fine."""
        _unlink(self._file(path) for path in paths)

    def discard(self, paths: Iterable[str]) -> None:
        """Remove files under their temporary names."""
        _unlink(temp_of(self._file(path)) for path in paths)

    def ours(self) -> list[str]:
        """Every file below the folder that has a name as Farebox gives them."""
        found = self._folder.glob("*/date=*/*")
        return [of_archive(f.relative_to(self._folder).as_posix()) for f in found if OUR_NAME.fullmatch(f.name)]

    def _file(self, path: str) -> Path:
        return self._folder / within_archive(path)


class _SyncedFile(io.BufferedWriter):
    """A file that is on the disk, not only on its way there, when it is closed."""

    def close(self) -> None:
        if not self.closed:
            try:
                self.flush()
                os.fsync(self.fileno())
            finally:
                super().close()


def _unlink(files: Iterable[Path]) -> None:
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)  # noqa: PTH108
