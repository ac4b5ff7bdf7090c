"""The archive's files by the names that the manifest gives them, wherever they lie."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from .layout import TEMP_PREFIX, Layout

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

OUR_NAME = re.compile(rf"(?:{re.escape(TEMP_PREFIX)}.+|-?\d+-[0-9a-f]{{16}}\.parquet)")
_ARCHIVE = "archive/"


class Files(ABC):
    """Files of one archive. A path is the manifest's: `archive/<table>/date=YYYY-MM-DD/<name>.parquet`."""

    filesystem: FileSystem
    lock: Path
    """The folder that readers lock, so that nobody removes a file under their feet."""
    is_remote: bool

    @abstractmethod
    def at(self, path: str) -> str:
        """Where `filesystem` has a file."""

    @abstractmethod
    def name(self, path: str) -> str:
        """A file as it is called to people."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Bytes of a file; FileNotFoundError without one."""

    @abstractmethod
    def create(self, path: str) -> BinaryIO:
        """A new file, which is safe against a power cut once it is closed, and counts for nothing until then."""

    @abstractmethod
    def publish(self, paths: Iterable[str]) -> None:
        """Give created files their names, for good."""

    @abstractmethod
    def remove(self, paths: Iterable[str]) -> None:
        """Remove files; one that is gone already is fine."""

    @abstractmethod
    def discard(self, paths: Iterable[str]) -> None:
        """Remove what was created and never published."""

    @abstractmethod
    def ours(self) -> list[str]:
        """Every file there that has a name as Farebox gives them, half-written ones too."""


def open_files(layout: Layout) -> Files:
    """The files of a store's archive; InputError for a URL that cannot be read."""
    return _open(layout, layout.read_archive_url())


@lru_cache(maxsize=32)
def _open(layout: Layout, url: str | None) -> Files:
    from .local_files import LocalFiles

    if url is None:
        return LocalFiles(layout.archive)
    from .remote_files import resolve

    return resolve(layout, url)


def path_of(table: str, day: str, name: str) -> str:
    """What the manifest calls a file of one table and UTC date."""
    return f"{_ARCHIVE}{table}/date={day}/{name}.parquet"


def within_archive(path: str) -> str:
    """A path without the folder that stands for the archive."""
    return path.removeprefix(_ARCHIVE)


def of_archive(within: str) -> str:
    """The other way round."""
    return _ARCHIVE + within
