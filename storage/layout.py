"""Where things lie in a store's folder, and how private they are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

DAY_NS = 86_400_000_000_000
TEMP_PREFIX = ".tmp-"
_EPOCH = date(1970, 1, 1)
_EPOCH_INSTANT = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Layout:
    """The paths of one store."""

    root: Path

    @property
    def exists(self) -> bool:
        """Whether there is a store, wherever its hot part is."""
        return self.url.exists() or self.database.exists()

    @property
    def database(self) -> Path:
        """The hot store."""
        return self.root / "live.sqlite"

    @property
    def url(self) -> Path:
        """The file that names a PostgreSQL as the hot store, for its owner only: the URL may hold a password."""
        return self.root / "database.url"

    def read_url(self) -> str | None:
        """The URL of the hot store; None: it is the SQLite file."""
        return _read_line(self.url)

    @property
    def archive_url(self) -> Path:
        """The file that names the place of an archive which is not in the store's folder, for its owner only."""
        return self.root / "archive.url"

    def read_archive_url(self) -> str | None:
        """The URL of the archive; None: it is the folder `archive`."""
        return _read_line(self.archive_url)

    @property
    def wal(self) -> Path:
        """The hot store's write-ahead log."""
        return self.root / "live.sqlite-wal"

    @property
    def lock(self) -> Path:
        """The file that the one event writer locks."""
        return self.root / "store.lock"

    @property
    def spools(self) -> Path:
        """The folder of the store's own spools, one folder per writer."""
        return self.root / "spool"

    @property
    def archive(self) -> Path:
        """The root of the Parquet files: `archive/<table>/date=YYYY-MM-DD/*.parquet`."""
        return self.root / "archive"


def _read_line(file: Path) -> str | None:
    try:
        return file.read_text().strip() or None
    except (FileNotFoundError, NotADirectoryError):
        return None


def day_of(at_ns: int) -> str:
    """The UTC date of an instant, as YYYY-MM-DD."""
    return (_EPOCH + timedelta(days=at_ns // DAY_NS)).isoformat()


def instant_text(at_ns: int) -> str:
    """An instant as `2026-01-01T00:00:00Z`, with a fraction where it has one."""
    seconds, fraction = divmod(at_ns, 10**9)
    text = (_EPOCH_INSTANT + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{fraction:09}Z" if fraction else f"{text}Z"


def temp_of(path: Path) -> Path:
    """The name under which a file is written: no glob for `*.parquet`, and no data set scanner, looks at it."""
    return path.with_name(TEMP_PREFIX + path.stem)


def make_private_folder(path: Path) -> None:
    """Create a folder (and its parents) that only its owner may enter; one that exists is left as it is."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        sync_folder(path.parent)


def open_private_file(path: Path, flags: int) -> int:
    """Open a file, creating it for its owner only; returns the file descriptor."""
    return os.open(path, flags | os.O_CREAT, 0o600)


def sync_folder(path: Path) -> None:
    """Make new names inside a folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
