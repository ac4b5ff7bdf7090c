"""An estimate of busy time for pages without a clock: what the step model says the tokens of an interval take."""

from __future__ import annotations

from typing import NamedTuple

from ...roofline.step_model import UNIT_BITS, StepModel

TYPICAL_CONTEXT = 1024
"""Tokens behind a decoding sequence when nothing tells."""


class Work(NamedTuple):
    """What an engine did between two readings."""

    prefill_rows: int
    decode_rows: int
    prompts: int
    """Prompts that these rows belong to; at least 1 if there are any."""
    riders: int
    """Sequences that decoded together, on average; at least 1."""
    context: int | None
    """Tokens behind a decoding sequence; None: nothing tells."""


class Phases(NamedTuple):
    """The time of an interval's steps by what they were for, in ns."""

    prefill_ns: int
    decode_ns: int

    @property
    def total(self) -> int:
        """Both."""
        return self.prefill_ns + self.decode_ns

    def scaled(self, to_ns: int) -> Phases:
        """In the same proportion, but so long together; all prefill where the proportion is 0 to 0."""
        if self.total == 0:
            return Phases(to_ns, 0)
        prefill = self.prefill_ns * to_ns // self.total
        return Phases(prefill, to_ns - prefill)


def estimate(model: StepModel, work: Work) -> Phases:
    """How long the work takes by the step model.

    Decodes ride in steps of `riders`; each prompt's rows ride along and lengthen one step, or are a step of their own
    when nobody decodes.
    """
    steps = -(-work.decode_rows // work.riders) if work.decode_rows else 0
    context = TYPICAL_CONTEXT if work.context is None else work.context
    decode = steps * (model.overhead + model.linear(min(work.riders, work.decode_rows)))
    decode += model.kv_token * context * work.decode_rows
    return Phases(_prefill(model, work, bool(steps)) >> UNIT_BITS, decode >> UNIT_BITS)


def _prefill(model: StepModel, work: Work, riding_along: bool) -> int:
    if work.prefill_rows <= 0:
        return 0
    prompts = min(max(1, work.prompts), work.prefill_rows)
    rows = work.prefill_rows // prompts
    alone = model.overhead + model.linear(rows)
    beside = model.linear(rows + work.riders) - model.linear(work.riders)
    return prompts * ((beside if riding_along else alone) + model.prompt + model.attention(rows, 0))
