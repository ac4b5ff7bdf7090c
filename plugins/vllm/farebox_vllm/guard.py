"""The guard: what goes wrong in a hook stays there, and a plugin that keeps going wrong takes itself out."""

from __future__ import annotations

from collections.abc import Callable

from .log import LOG

MOST_FAULTS = 5
GOOD_STEPS = 1000
"""So many steps without a fault, and earlier ones are forgotten."""


class Guard:
    """Counts faults; with too many in a row it calls `switch_off`, once, and says so in vLLM's log."""

    def __init__(self, switch_off: Callable[[], None]) -> None:
        self.is_off = False
        self.faults = 0
        self._switch_off = switch_off
        self._last_step = 0

    def fault(self, where: str, step: int) -> None:
        """Something was raised in a hook, in this step. To be called while it is handled."""
        if self.is_off:
            return
        if step - self._last_step > GOOD_STEPS:
            self.faults = 0
        self.faults, self._last_step = self.faults + 1, step
        if self.faults < MOST_FAULTS:
            LOG.debug("farebox: %s went wrong", where, exc_info=True)
            return
        self.is_off = True
        LOG.warning(
            "farebox: %s went wrong, the %dth time in a short while: metering is off until vLLM is restarted",
            where,
            self.faults,
            exc_info=True,
        )
        self._switch_off()
