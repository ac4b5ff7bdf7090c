"""What can go wrong with a store, in words for the person at the terminal."""

from ..errors import FareboxError


class StoreError(FareboxError):
    """A store could not be used; the message says what happened, where, and what to do."""


class StoreNotFoundError(StoreError):
    """There is no store at that path, or not any more."""


class StoreLockedError(StoreError):
    """Another process is recording into the store; `pid` is its process id where it could be read."""

    def __init__(self, message: str, pid: int | None) -> None:
        super().__init__(message)
        self.pid = pid


class StoreFullError(StoreError):
    """There is no room on the store's disk; nothing was written, and it can be tried again."""


class DuplicateError(StoreError):
    """Rows of a batch are already recorded; nothing of the batch was."""


class OverlapError(StoreError):
    """Two runs of one engine claim the same time; nothing was recorded."""


class ClosedError(StoreError):
    """The time of a closed period cannot be closed again or opened; nothing was changed."""


class ArchiveUnreachableError(StoreError):
    """The archive's object store does not answer; what was to be archived stays in the hot store."""


class ArchiveBusyError(StoreError):
    """Somebody reads the archive, so no file of it can be removed now."""
