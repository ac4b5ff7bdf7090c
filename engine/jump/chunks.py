"""Chunks as columns: rows of those who do not (or not yet again) decode."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...roofline.step_model import StepModel
from .decode_rows import Bools, Ints


class Chunks(NamedTuple):
    """Every chunk of a segment, by step; int64[chunks] and bool[chunks]. Steps count from the segment's first."""

    request: Ints
    group: Ints
    step: Ints
    rows: Ints
    before: Ints
    """Tokens computed before."""
    attn: Ints
    cached: Ints
    """Prompt tokens before it that the prefix cache served, and that the request never had before."""
    held: Ints
    """Hashed KV blocks that its request holds, and `parts` its part of them in 2⁻²⁰."""
    parts: Ints
    redone: Ints
    """Rows that had been computed once, before a preemption."""
    boards: Bools
    sampled: Bools
    ends: Bools
    decodes: Bools
    """Whether rows that are not redone are decode rows."""

    @property
    def decode_rows(self) -> Ints:
        """Rows of tokens that were generated, and are computed for the first time."""
        return np.where(self.decodes, self.rows - self.redone, 0)

    @property
    def redone_attn(self) -> Ints:
        """The part of the attention that redone rows have, rounded down."""
        return part(self.attn, self.redone, self.rows)

    def blocks(self, block_size: int) -> Ints:
        """KV blocks that each chunk's request holds afterwards and that are not hashed."""
        return -(-(self.before + self.rows) // block_size) - self.held

    def per_step(self, values: Ints | Bools, steps: int) -> Ints:
        """Sums of one value per chunk (int64[steps])."""
        sums = np.zeros(steps, np.int64)
        if len(self.step):
            np.add.at(sums, self.step, values.astype(np.int64))
        return sums


def attention(model: StepModel, rows: Ints, before: Ints) -> Ints:
    """`StepModel.attention` by columns."""
    return np.maximum(model.kv_token * (before + rows), model.attn_pair * pairs(rows, before))


def pairs(rows: Ints, before: Ints) -> Ints:
    """(row, context token) pairs; see `step_model.pairs`."""
    return rows * before + rows * (rows + 1) // 2


def part(amount: Ints, rows: Ints, of: Ints) -> Ints:
    """⌊amount · rows / of⌋ without the product, which might not fit."""
    whole, rest = np.divmod(amount, of)
    return whole * rows + rest * rows // of
