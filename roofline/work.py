"""The work of a step: what its time depends on."""

from __future__ import annotations

from typing import Any, NamedTuple

from .step_model import pairs


class Work(NamedTuple):
    """Rows, sequences and contexts of a step; numbers, or arrays of them for many steps (float64[n])."""

    rows: Any
    """Token rows that the layers compute."""
    sampled: Any
    """Rows that go through the head: one per sequence."""
    decodes: Any = 0
    """Sequences that decode one row each."""
    seen: Any = 0
    """Tokens of context that they read, their own row included."""
    prompt_rows: Any = 0
    prompt_pairs: Any = 0
    """(row, context token) pairs of the prompts' rows."""

    @classmethod
    def decode(cls, batch: int, context: int) -> Work:
        """`batch` sequences that decode one token each and see `context` tokens."""
        return cls(batch, batch, batch, batch * context)

    @classmethod
    def prefill(cls, batch: int, rows: int, behind: int = 0) -> Work:
        """`batch` prompts with `rows` rows each, behind `behind` tokens already in the cache."""
        return cls(batch * rows, batch, 0, 0, batch * rows, batch * pairs(rows, behind))
