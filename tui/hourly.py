"""The amounts of an hour as they are shown: rounded together, once, so that line and table add up to the price."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .money import decimals, rounded

if TYPE_CHECKING:
    from .snapshot import Snapshot


class Hourly(NamedTuple):
    """Amounts per hour in units of 10⁻ᵖˡᵃᶜᵉˢ of the currency."""

    places: int
    tenants: tuple[int, ...]
    idle: int
    overhead: int
    underfill: int
    unobserved: int

    @property
    def total(self) -> int:
        """The price of the hour."""
        return sum(self.tenants) + self.idle + self.overhead + self.underfill + self.unobserved


def hourly(snapshot: Snapshot) -> Hourly | None:
    """Round a snapshot's amounts; None when it has no price."""
    money = snapshot.money
    if money is None:
        return None
    places = decimals(money.total)
    parts = [*(t.hourly or 0 for t in snapshot.tenants), money.idle, money.overhead, money.underfill, money.unobserved]
    *tenants, idle, overhead, underfill, unobserved = rounded(parts, places)
    return Hourly(places, tuple(tenants), idle, overhead, underfill, unobserved)
