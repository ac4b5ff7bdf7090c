"""The reading side of a spool: each event once, and segments removed once they are recorded."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ...events import Spooled
from .lines import LOCK, decode, segment_path, segments

MOST_BYTES = 64 * 2**20
"""No writer makes a longer line: one that is longer is damage, and is read in pieces."""


class Event(NamedTuple):
    """An event of a spool, and the place behind it."""

    value: Any
    place: Spooled


class SpoolReader:
    """Reads one writer's folder from a place on. `damaged` counts lines that were not as they were written.

    A line without its end is still being written: it is left for later, unless the writer is gone or has gone on to
    the next segment.
    """

    def __init__(self, folder: Path, place: Spooled | None = None, writer: str | None = None) -> None:
        """Read on from `place`; places are called `writer`, or as the folder is."""
        self.folder = folder
        self.writer = writer or folder.name
        self.place = place or Spooled(self.writer, 0, 0)
        self.damaged = 0

    def read(self, limit: int = 50_000) -> Iterator[Event]:
        """Up to `limit` events behind the place, which moves on with them."""
        closed = not self.is_written
        numbers = [number for number in segments(self.folder) if number >= self.place.segment]
        for number in numbers:
            is_done = closed or number < numbers[-1]
            for event in self._segment(number, is_done, limit):
                yield event
                limit -= 1
            if limit <= 0:
                return

    @property
    def is_written(self) -> bool:
        """Whether the writer is alive."""
        try:
            descriptor = os.open(self.folder / LOCK, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    @property
    def is_at_end(self) -> bool:
        """Whether everything that is written was read."""
        return all(self._is_read(number, self.place) for number in segments(self.folder))

    def bytes_behind(self) -> int:
        """How much is written and not read yet."""
        left = sum(
            segment_path(self.folder, n).stat().st_size for n in segments(self.folder) if n >= self.place.segment
        )
        return left - (self.place.offset if segment_path(self.folder, self.place.segment).exists() else 0)

    def remove_before(self, place: Spooled) -> None:
        """Remove the segments that lie before a place which is recorded; with a dead writer, the emptied folder too."""
        gone = not self.is_written
        left = 0
        for number in segments(self.folder):
            if number < place.segment or (gone and self._is_read(number, place)):
                segment_path(self.folder, number).unlink()
            else:
                left += 1
        if gone and not left:
            (self.folder / LOCK).unlink(missing_ok=True)
            self.folder.rmdir()

    def _is_read(self, number: int, place: Spooled) -> bool:
        """Whether a segment has nothing behind a place; one that a writer had just begun when it died is empty."""
        if number < place.segment:
            return True
        read = place.offset if number == place.segment else 0
        return segment_path(self.folder, number).stat().st_size <= read

    def _segment(self, number: int, is_done: bool, limit: int) -> Iterator[Event]:
        offset = self.place.offset if number == self.place.segment else 0
        with segment_path(self.folder, number).open("rb") as file:
            file.seek(offset)
            while limit > 0 and (line := file.readline(MOST_BYTES)):
                if not line.endswith(b"\n") and not is_done and len(line) < MOST_BYTES:
                    return
                offset += len(line)
                self.place = Spooled(self.writer, number, offset)
                try:
                    value = decode(line)
                except ValueError:
                    self.damaged += 1
                    continue
                limit -= 1
                yield Event(value, self.place)


def spools(root: Path) -> list[Path]:
    """The folders of all writers under `root`, by name."""
    return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
