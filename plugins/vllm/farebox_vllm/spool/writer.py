"""The writing side of a spool: events go to disk four times a second, and whoever emits them never waits."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .lines import LOCK, encode, segment_path, segments

FLUSH_S = 0.25
SEGMENT_BYTES = 8 * 2**20
CAP_BYTES = 2**30
MEMORY_EVENTS = 200_000
_LEAST_SEGMENTS = 4
"""The newest segment is never removed, so a cap must leave room to begin another."""


class SpoolWriter:
    """Appends events to segments under `folder`, which is this writer's own.

    `put` is one append to a queue: it never blocks, raises or does I/O. A thread writes what is queued. On a disk that
    is full, or beyond `cap_bytes` that nobody has taken over yet, events wait in memory, at most `MEMORY_EVENTS` of
    them; then the oldest are dropped, counted, and the count is written as `{"dropped": n}` once there is room.
    """

    def __init__(
        self,
        folder: Path,
        *,
        flush_s: float = FLUSH_S,
        segment_bytes: int = SEGMENT_BYTES,
        cap_bytes: int = CAP_BYTES,
        memory_events: int = MEMORY_EVENTS,
        prepare: Callable[[Any], Any] | None = None,
    ) -> None:
        """Take the folder; `prepare` turns a queued event into a JSON value, on the writing thread.

        Raises:
            OSError: the folder cannot be made, or another writer has it (BlockingIOError).
        """
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._lock = _take(folder / LOCK)
        self._flush_s, self._cap_bytes = flush_s, cap_bytes
        self._segment_bytes = min(segment_bytes, cap_bytes // _LEAST_SEGMENTS)
        self._memory_events = memory_events
        self._prepare = prepare
        self._queue: deque[Any] = deque()
        self._lines: deque[bytes] = deque()
        self._dropped = self._untold = 0
        self._number = max(segments(folder), default=-1) + 1
        self._segment: int | None = None
        self._size = 0
        self._stop = threading.Event()
        self.put = self._queue.append
        """Queue one event."""
        self._thread = threading.Thread(target=self._run, name="farebox-spool", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Events lost so far because neither disk nor memory had room."""
        return self._dropped

    def close(self) -> None:
        """Write what is queued and let go of the folder."""
        self._stop.set()
        self._thread.join()
        if self._segment is not None:
            os.close(self._segment)
        os.close(self._lock)

    def _run(self) -> None:
        while not self._stop.wait(self._flush_s):
            self._flush()
        self._flush()

    def _flush(self) -> None:
        self._encode_queued()
        try:
            if self._untold and self._has_room():
                self._write(encode({"dropped": self._untold}))
                self._untold = 0
            while self._lines and self._has_room():
                self._write(self._lines[0])
                self._lines.popleft()
        except OSError:
            pass  # the lines stay in memory, and the next flush tries again
        self._forget()

    def _encode_queued(self) -> None:
        while self._queue:
            event = self._queue.popleft()
            try:
                self._lines.append(encode(event if self._prepare is None else self._prepare(event)))
            except (TypeError, ValueError):
                self._count_dropped(1)

    def _has_room(self) -> bool:
        """Whether the segment in hand has room, or a new one may be begun."""
        if self._segment is not None and self._size < self._segment_bytes:
            return True
        held = sum(segment_path(self._folder, number).stat().st_size for number in segments(self._folder))
        return held + self._segment_bytes <= self._cap_bytes

    def _write(self, line: bytes) -> None:
        """Append a whole line or nothing."""
        segment = self._open()
        try:
            written = os.write(segment, line)
        except OSError:
            written = 0
        if written < len(line):
            os.ftruncate(segment, self._size)
            raise OSError(f"no room for {len(line)} bytes in {self._folder}")
        self._size += written

    def _open(self) -> int:
        if self._segment is not None and self._size >= self._segment_bytes:
            os.close(self._segment)
            self._segment = None
        if self._segment is None:
            path = segment_path(self._folder, self._number)
            self._segment = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
            self._number += 1
            self._size = 0
        return self._segment

    def _forget(self) -> None:
        over = len(self._lines) - self._memory_events
        if over > 0:
            for _ in range(over):
                self._lines.popleft()
            self._count_dropped(over)

    def _count_dropped(self, count: int) -> None:
        self._dropped += count
        self._untold += count


def _take(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        with contextlib.suppress(OSError):
            os.close(descriptor)
        raise
    return descriptor
