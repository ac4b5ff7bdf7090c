"""From when to when a store's ledger goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...storage.store import Store


def booked(store: Store) -> tuple[int, int]:
    """The ledger's minutes [from, to) in UTC ns. Raises InputError where nothing is booked yet."""
    from ...errors import InputError
    from ...events import LEDGER, MINUTE_NS

    ends = store.extent(LEDGER)
    if ends is None:
        raise InputError("nothing is booked yet: the first minute of the ledger comes with the first steps")
    return ends[0], ends[1] + MINUTE_NS
