"""How far a spool has been taken over."""

from __future__ import annotations

from typing import NamedTuple


class Spooled(NamedTuple):
    """A place in a spool: everything of `writer` before `offset` in `segment` is recorded."""

    writer: str
    """Name of the spool's folder: one process that writes events."""
    segment: int
    offset: int
    """Bytes from the beginning of the segment."""

    @property
    def at(self) -> tuple[int, int]:
        """Where it is, comparable with the other places of its spool."""
        return self.segment, self.offset
