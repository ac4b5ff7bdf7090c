"""Energy of one device since a watch began: from its counter, or integrated from its power."""

from __future__ import annotations

from typing import NamedTuple

from .reasons import UNANSWERED, Missing, missing

MOST_MW = 3_000_000
"""More than any device draws: the bound for those that do not tell their power limit."""
LONGEST_NS = 60_000_000_000
"""Power readings further apart than this are not joined: nobody knows what happened between them."""


class Mark(NamedTuple):
    """A reading and its instant."""

    at_ns: int
    value: int


class EnergyMeter:
    """Adds up energy in mJ. It settles for one basis at the first definite answer and never changes it."""

    def __init__(self) -> None:
        self.basis: str | None = None
        self._counter = CounterEnergy()
        self._power = PowerEnergy()

    def add(self, at_ns: int, counter: int | Missing, power_mw: int | Missing, limit_mw: int | None) -> int | Missing:
        """The energy up to now, given what was just read; `at_ns` never goes back."""
        if self.basis is None:
            self.basis = _basis_of(counter, power_mw)
        if self.basis == "power":
            return self._power.add(at_ns, power_mw)
        return self._counter.add(at_ns, counter, limit_mw)

    def pause(self) -> None:
        """The device is gone for a while: what it drew meanwhile is not made up from readings around it."""
        self._power.pause()


def _basis_of(counter: int | Missing, power_mw: int | Missing) -> str | None:
    if not isinstance(counter, Missing):
        return "counter"
    return "power" if counter.code in UNANSWERED and not isinstance(power_mw, Missing) else None


class CounterEnergy:
    """Differences of a counter that may glitch or start anew.

    A reading that cannot follow the last good one is put aside. If the next one follows the good one, it was a glitch;
    if it follows the odd one, the counter started anew, and what the jump hid is not counted.
    """

    def __init__(self) -> None:
        self._good: Mark | None = None
        self._odd: Mark | None = None
        self._total_mj = 0

    def add(self, at_ns: int, counter: int | Missing, limit_mw: int | None) -> int | Missing:
        """The energy in mJ since the first reading."""
        if isinstance(counter, Missing):
            return counter
        now = Mark(at_ns, counter)
        if self._good is None:
            self._good = now
            return self._total_mj
        for base in (self._good, self._odd):
            if base is not None and _follows(base, now, limit_mw):
                self._total_mj += now.value - base.value
                self._good, self._odd = now, None
                return self._total_mj
        self._odd = now
        return missing("ODD")


def _follows(base: Mark, now: Mark, limit_mw: int | None) -> bool:
    """Whether a device can have used that much: power limit × time, and a tenth because counters move in steps."""
    most = (limit_mw or MOST_MW) * (now.at_ns - base.at_ns) * 11 // (10 * 10**9)
    return 0 <= now.value - base.value <= most


class PowerEnergy:
    """The trapezoid rule over power readings; doubled mW·ns, so that it stays exact."""

    def __init__(self) -> None:
        self._last: Mark | None = None
        self._total = 0

    def add(self, at_ns: int, power_mw: int | Missing) -> int | Missing:
        """The energy in mJ since the first reading; time next to a missing reading is not counted."""
        last = self._last
        self.pause()
        if isinstance(power_mw, Missing):
            return power_mw
        self._last = Mark(at_ns, power_mw)
        if last is not None and at_ns - last.at_ns <= LONGEST_NS:
            self._total += (last.value + power_mw) * (at_ns - last.at_ns)
        return self._total // (2 * 10**9)

    def pause(self) -> None:
        """Join nothing to the last reading."""
        self._last = None
