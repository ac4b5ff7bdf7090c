"""Where answers come from: an open store, and what its readers are told and lent."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from typing import NamedTuple

from .database import Database
from .layout import Layout


class MissingRowsWarning(UserWarning):
    """A file of the archive cannot be read; answers lack its rows."""


class Warnings(list[str]):
    """Warnings of a store, which Python's own warnings repeat, so that a notebook shows them."""

    def append(self, object: str, /) -> None:
        """Keep a warning and let Python tell it."""
        super().append(object)
        warnings.warn(object, MissingRowsWarning, stacklevel=2)


class Source(NamedTuple):
    """An open store. `lent` holds what relations need until the store is closed."""

    layout: Layout
    database: Database
    warnings: list[str]
    lent: ExitStack
