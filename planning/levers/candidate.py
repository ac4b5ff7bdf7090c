"""A candidate: a change worth trying, as arguments of `farebox whatif`, and what speaks for it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from ..outcome import Outcome
from ..slo import Slo
from ..traffic import Recorded

Certainty = Literal["scheduling", "hardware", "answers"]
"""What its figures rest on: how the same engine schedules, how fast another one is, or that answers stay good."""


class Candidate(NamedTuple):
    """One thing to try. Of one lever's candidates only the best becomes advice."""

    lever: str
    title: str
    evidence: str
    arguments: tuple[str, ...]
    """Arguments of `farebox whatif` beside the store, window and SLOs."""
    rests_on: Certainty = "scheduling"


class Look(NamedTuple):
    """What levers look at: recorded traffic, how it went, and what was promised."""

    recorded: Recorded
    before: Outcome
    slos: tuple[Slo, ...]
