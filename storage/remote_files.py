"""An archive in an object store: an object is there as a whole or not at all, under a name that nobody used before."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow.fs import FileSelector, FileSystem, FileType, LocalFileSystem

from ..errors import InputError
from .errors import ArchiveUnreachableError, StoreError
from .files import OUR_NAME, Files, of_archive, open_files, within_archive
from .layout import Layout, make_private_folder, open_private_file
from .local_files import LocalFiles


class RemoteFiles(Files):
    """Objects below a prefix. Nothing is renamed: what the manifest does not list does not count."""

    is_remote = True

    def __init__(self, filesystem: FileSystem, prefix: str, lock: Path, name: str) -> None:
        """`name` is the URL of the prefix without secrets."""
        self.filesystem = filesystem
        self.lock = lock
        self._prefix, self._name = prefix.rstrip("/"), name.rstrip("/")

    def at(self, path: str) -> str:
        """Where `filesystem` has a file."""
        return f"{self._prefix}/{within_archive(path)}".lstrip("/")

    def name(self, path: str) -> str:
        """The URL of a file."""
        return f"{self._name}/{within_archive(path)}"

    def size(self, path: str) -> int:
        """Bytes of a file; FileNotFoundError without one, ArchiveUnreachableError when nobody can tell."""
        try:
            info: Any = self.filesystem.get_file_info(self.at(path))
        except OSError as error:
            raise ArchiveUnreachableError(f"{self._name} cannot be read now: {error}") from None
        if info.type != FileType.File:
            raise FileNotFoundError(f"it is not in {self._name}")
        return info.size

    def create(self, path: str) -> BinaryIO:
        """An object that appears when it is closed."""
        at = self.at(path)
        try:
            stream: Any = self.filesystem.open_output_stream(at)
        except FileNotFoundError:  # a file system that has folders
            self.filesystem.create_dir(at.rpartition("/")[0], recursive=True)
            stream = self.filesystem.open_output_stream(at)
        return cast(BinaryIO, stream)

    def publish(self, paths: Iterable[str]) -> None:
        """Objects have their names already."""

    def remove(self, paths: Iterable[str]) -> None:
        """Remove objects; one that is gone already is fine."""
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                self.filesystem.delete_file(self.at(path))

    def discard(self, paths: Iterable[str]) -> None:
        """What is not listed is removed under the only name that it has."""

    def ours(self) -> list[str]:
        """Every object below the prefix that has a name as Farebox gives them."""
        selector = FileSelector(self._prefix, recursive=True, allow_not_found=True)
        found: Any = self.filesystem.get_file_info(selector)
        names = (info.path.removeprefix(self._prefix).lstrip("/") for info in found if info.type == FileType.File)
        return [of_archive(name) for name in names if OUR_NAME.fullmatch(name.rpartition("/")[2])]


def resolve(layout: Layout, url: str) -> Files:
    """The files at a URL: `s3://bucket/prefix`, `gs://…`, `abfs://…`, or `file:///folder`.

    Raises InputError for a URL that says nothing, or of a kind that this pyarrow does not know.
    """
    try:
        filesystem, prefix = FileSystem.from_uri(url)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"the archive's URL {plain(url)} cannot be used: {error}") from None
    if isinstance(filesystem, LocalFileSystem):
        return LocalFiles(Path(prefix))
    return RemoteFiles(filesystem, prefix, layout.archive, plain(url))


def keep_archive_at(root: Path, url: str) -> None:
    """Have a URL hold the archive of a store that has none yet; the store's folder is made.

    Raises InputError for a URL that cannot be used, StoreError when there is an archive at either place already.
    """
    layout = Layout(root)
    if layout.read_archive_url() == url:
        return
    files = resolve(layout, url)
    if layout.archive_url.exists() or open_files(layout).ours():
        raise StoreError(f"{root} has its archive elsewhere already: choose another folder")
    try:
        if files.ours():
            raise StoreError(f"{plain(url)} holds the archive of a store: choose another place for this one")
    except OSError as error:
        raise ArchiveUnreachableError(f"cannot reach {plain(url)}: {error}") from None
    make_private_folder(root)
    with os.fdopen(open_private_file(layout.archive_url, os.O_WRONLY | os.O_EXCL), "w") as file:
        file.write(f"{url}\n")


def plain(url: str) -> str:
    """A URL without user, password and options, which may hold secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
