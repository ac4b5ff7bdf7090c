"""What a recorder needs of whatever keeps its events: a store, or memory."""

from __future__ import annotations

from typing import Any, Protocol

from ..events import Batch, Progress, Run, Table


class Keeper(Protocol):
    """Keeps booked batches; `storage.Store` is one. Their meaning is that of its methods."""

    def progress(self, engine_id: str, run_id: str) -> Progress | None:
        """How much of a run is kept; None when nothing is."""
        ...

    def run(self, engine_id: str, run_id: str) -> Run | None:
        """A run as it was last kept; None when it is not."""
        ...

    def put(self, table: Table, record: tuple[Any, ...]) -> None:
        """Keep a setting."""
        ...

    def append(self, batch: Batch) -> None:
        """Keep a batch."""
        ...

    def append_archive(self, batch: Batch) -> None:
        """Keep a batch of a run at full speed."""
        ...


class BatchStream(Protocol):
    """Takes one run's batches; `storage.stream.ArchiveStream` is one."""

    def append(self, batch: Batch) -> None:
        """Take a batch."""
        ...

    def end(self, run: Run, progress: Progress) -> None:
        """The run ended."""
        ...
