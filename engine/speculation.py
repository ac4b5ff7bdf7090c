"""Speculative decoding: a draft proposes tokens, and one step of the model verifies them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from ..roofline.step_model import StepModel

if TYPE_CHECKING:
    from .riders import Chunk

PER_MILLION = 1_000_000
_MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Speculation:
    """How many tokens are drafted per step, how many of them are right, and what drafting costs."""

    num_speculative_tokens: int
    accepted_per_million: int
    """How often a drafted token is right if those before it are."""
    seed: int = 0
    draft: StepModel | None = None
    """The draft model on the same GPUs; None: drafts cost nothing, as n-grams do."""

    def key(self, request_id: str) -> int:
        """What decides about a request's drafts."""
        return int.from_bytes(blake2b(f"{self.seed}:{request_id}".encode(), digest_size=8).digest())

    def accepted(self, key: int, position: int, drafts: int) -> int:
        """How many of the tokens drafted for the outputs from `position` on are right, up to the first wrong one.

        A matter of key and position alone, in integers, so that the same request always gets the same answers.
        """
        for number in range(drafts):
            if _mix(key + position + number) % PER_MILLION >= self.accepted_per_million:
                return number
        return drafts

    def draft_units(self, chunks: Sequence[Chunk]) -> list[int]:
        """Time that the draft model takes after a step, by chunk, in clock units.

        Its first pass reads all rows of the step; each further one reads a row of everybody who has sampled.
        """
        units = [0] * len(chunks)
        if self.draft is None or not chunks:
            return units
        rows = [chunk.rows for chunk in chunks]
        sampling = [int(chunk.completes) for chunk in chunks]
        passes = self.num_speculative_tokens - 1
        first = _shares(self.draft.overhead + self.draft.linear(sum(rows)), rows)
        further = _shares(passes * (self.draft.overhead + self.draft.linear(sum(sampling))), sampling)
        for index, chunk in enumerate(chunks):
            seen = chunk.seq.num_computed
            units[index] = first[index] + further[index] + self.draft.attention(chunk.rows, seen)
            if chunk.completes:
                units[index] += sum(self.draft.attention(1, seen + chunk.rows + number) for number in range(passes))
        return units


def _shares(units: int, weights: Sequence[int]) -> list[int]:
    """Units by weight, as floor-differences: they sum to `units`, or to 0 without any weight."""
    total = sum(weights)
    if not total:
        return [0] * len(weights)
    return [after - before for before, after in pairwise(units * w // total for w in accumulate(weights, initial=0))]


def _mix(value: int) -> int:
    """A number between 0 and 2⁶⁴ that looks drawn at random (the finaliser of SplitMix64)."""
    value = (value * 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)
