"""A store that is being recorded into, and what is due when that ends."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..engine.pace import Pace
    from ..storage.store import Store


@contextmanager
def recording(place: Path, pace: Pace | None, rate: Decimal | None) -> Generator[Store]:
    """Open or make the store at `place` with `rate` for any GPU in it; in the end everything goes to the archive."""
    from ..storage.store import create_store

    with create_store(place) as store:
        keep_rate(store, rate, "farebox run")
        yield store
        store.roll()
        if pace is None:
            store.compact()


def keep_rate(store: Store, rate: Decimal | None, command: str) -> None:
    """Keep the price of a GPU-hour that was given to a command, if one was."""
    from ..events import Rate

    if rate is not None:
        store.put_rate(Rate("any", "", "USD", str(rate), None, 0, None, f"given to {command}"))
