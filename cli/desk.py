"""What the screens ask of the whole store: the store itself, and its books."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..costing.books import Books
    from ..costing.periods import Period
    from ..storage.store import Store


class StoreDesk:
    """The desk of the store at `path`; everything behind it loads when it is asked."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> Store:
        """The store, for reading."""
        from ..storage.store import open_store

        return open_store(self.path)

    def books(self, store: Store, *periods: Period, policy: str) -> Books:
        """The books of some periods under a policy, for bills by days at most."""
        from ..collector.books import load_books

        return load_books(store, *periods, policy=policy, hourly=False)
