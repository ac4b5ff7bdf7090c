"""How long an engine was busy in an interval, and how that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...events import Basis
from ...roofline.step_model import StepModel
from .counters import Moved
from .estimate import Phases, Work, estimate
from .reading import Reading

NOT_SEEN = "no page was read in between: this time is not observed"
NO_MODEL = (
    "the page does not tell whether it was busy all the time, and without GPU and model there is no step model to ask"
)
NO_COUNTERS = "the page tells neither who runs nor how many tokens moved"


class Busy(NamedTuple):
    """Busy time of an interval; `ns` is None where it is not known, and `why` says why."""

    ns: int | None
    phases: Phases | None
    """Its two parts, where something tells them apart."""
    basis: Basis
    why: str | None = None


@dataclass
class BusyClock:
    """Reads busy time off intervals; it remembers what an engine's clock has told too early.

    A clock that moves at the end of a batch may tell more than an interval lasts: the rest belongs to the next ones.
    """

    owed_ns: int = 0

    def look(
        self, before: Reading, now: Reading, moved: Moved, work: Work, span_ns: int, model: StepModel | None
    ) -> Busy:
        """Busy time in an interval of `span_ns`.

        The engine's own clock decides, else whether somebody rode at both ends, else the step model's estimate.
        """
        known = estimate(model, work) if model else None
        own_s = moved.counters.get("busy_s")
        if own_s is not None and not _stands_still(now):
            return self._by_clock(moved, round(own_s * 1e9), span_ns, known)
        riding = [reading.gauges.get("running") for reading in (before, now)]
        if all(riders is not None and riders > 0 for riders in riding):
            return Busy(span_ns, known.scaled(span_ns) if known else None, "interval")
        if all(riders == 0 for riders in riding) and not moved.has_worked:
            return Busy(0, Phases(0, 0), "interval")
        if riding == [None, None] and not _tells_tokens(moved):
            return Busy(None, None, "estimated", NO_COUNTERS)
        if known is None:
            return Busy(None, None, "estimated", NO_MODEL)
        busy = min(known.total, span_ns)
        return Busy(busy, known.scaled(busy), "estimated")

    def _by_clock(self, moved: Moved, own_ns: int, span_ns: int, known: Phases | None) -> Busy:
        self.owed_ns += own_ns
        busy = min(self.owed_ns, span_ns)
        self.owed_ns -= busy
        parts = [moved.counters.get(noun) for noun in ("prefill_busy_s", "decode_busy_s")]
        told = Phases(*(round((part or 0) * 1e9) for part in parts)) if any(part for part in parts) else known
        return Busy(busy, told.scaled(busy) if told else None, "interval")


def _stands_still(now: Reading) -> bool:
    """Whether an engine's clock never moved though tokens did: it is switched off (SGLang's, unless told otherwise)."""
    tokens = sum(now.counters.get(noun, 0) for noun in ("prompt_tokens", "computed_tokens", "output_tokens"))
    return now.counters.get("busy_s") == 0 and tokens > 0


def _tells_tokens(moved: Moved) -> bool:
    return any(noun in moved.counters for noun in ("prompt_tokens", "computed_tokens", "output_tokens"))
