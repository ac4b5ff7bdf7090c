"""The desk: answers what bills and history ask of the whole store. Behind it are libraries that load when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from ..costing.books import Books
    from ..costing.periods import Period
    from ..storage.store import Store


class Desk(Protocol):
    """Opens a store and its books; what it gives is for a worker thread, never for a widget."""

    path: Path

    def open(self) -> Store:
        """The store, for reading; close it."""
        ...

    def books(self, store: Store, *periods: Period, policy: str) -> Books:
        """The books of some periods under a policy; without any of all time."""
        ...
