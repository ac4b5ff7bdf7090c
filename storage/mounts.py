"""Which file system a path is on, and whether SQLite's write-ahead log works there."""

from __future__ import annotations

from pathlib import Path

import psutil

_NETWORK = ("nfs", "cifs", "smb", "9p", "ceph", "gluster", "fuse.", "lustre", "beegfs", "afs", "gpfs", "ocfs2", "gfs2")
_LOCAL = ("fuse.overlayfs", "fuse.fuse-overlayfs")


def file_system(path: Path) -> str | None:
    """The type of the file system that holds a path; None when no mount is known."""
    place = path.resolve()
    mounts = [part for part in psutil.disk_partitions(all=True) if place.is_relative_to(part.mountpoint)]
    deepest = max(mounts, key=lambda part: len(part.mountpoint), default=None)
    return None if deepest is None else deepest.fstype


def is_network(kind: str | None) -> bool:
    """Whether a file system is shared with other machines: its processes share no memory, which the log needs."""
    return kind is not None and kind.startswith(_NETWORK) and kind not in _LOCAL
