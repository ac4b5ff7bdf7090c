"""How long a step takes: weights streamed once, rows computed, every sequence's KV read.

    v(S) = o + L(M) + Σ a_i        L(M) = max(w(M), c·M) + r·M
                                   a_i = max(KV bytes read / bandwidth, attention FLOPs / FLOP rate)

w is a constant in a dense model; in a mixture of experts it grows with the rows, as more experts are touched. Around
the ridge, where neither memory nor arithmetic is busy all the time, L may be larger by lines of its own. L(M)/M never
rises with M, so that no group of riders pays more than riding alone. In a step with pieces of prompts, the a_i of these
share a constant p on top of attention.

All constants are integers in clock units of 2⁻²⁰ ns, rounded once, so that a step time is the same integer wherever
it is computed and durations never drift.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

UNIT_BITS = 20
UNITS_PER_NS = 1 << UNIT_BITS
_LEFT_OUT = (("streams", ()), ("ridge", ()), ("prompt", 0))
"""Constants that most models do not have."""
_FEW = 4
"""Times that a number of rows must come on average for a table of all numbers to pay."""
ALL_TOUCHED = 4096
"""Rows that touch every expert, for all that a step's time shows."""


@dataclass(frozen=True, slots=True)
class StepModel:
    """Constants of one model on one replica (all its GPUs together, working in lock step).

    Times are in clock units (2⁻²⁰ ns); `flops_*` and `*_bytes` are physical, summed over the GPUs.
    """

    overhead: int
    """o: launch, scheduling and all-reduce latency of one step."""
    weights: int
    """w: streaming all the weights once."""
    row: int
    """c: linear layers for one token row."""
    row_comm: int
    """r: all-reduce traffic and elementwise kernels for one token row."""
    kv_token: int
    """Reading the KV of one token of context."""
    attn_pair: int
    """Attention arithmetic of one (row, context token) pair."""
    weight_bytes: int
    kv_token_bytes: int
    flops_row: int
    flops_pair: int
    streams: tuple[tuple[int, int], ...] = ()
    """Lines (base, per row) whose least, and no more than `weights`, is w(M); none where w is the same for all M."""
    ridge: tuple[tuple[int, int], ...] = ()
    """Lines (base, per row) that max(w(M), c·M) does not fall below; no base is negative, no slope reaches c."""
    prompt: int = 0
    """p: what a step with a piece of a prompt takes on top, since it does not run as one graph of decodes."""

    @classmethod
    def of(
        cls,
        *,
        weight_bytes: int,
        kv_token_bytes: int,
        flops_row: int,
        flops_pair: int,
        bandwidth: float,
        kv_bandwidth: float,
        flops: float,
        attention_flops: float,
        overhead_s: float = 0.0,
        row_comm_s: float = 0.0,
    ) -> StepModel:
        """Build the constants from physical sizes and achieved rates (bytes/s, FLOP/s), each summed over the GPUs."""
        return cls(
            overhead=to_units(overhead_s),
            weights=to_units(weight_bytes / bandwidth),
            row=to_units(flops_row / flops),
            row_comm=to_units(row_comm_s),
            kv_token=to_units(kv_token_bytes / kv_bandwidth),
            attn_pair=to_units(flops_pair / attention_flops),
            weight_bytes=weight_bytes,
            kv_token_bytes=kv_token_bytes,
            flops_row=flops_row,
            flops_pair=flops_pair,
        )

    def streamed(self, rows: int) -> int:
        """w(M): streaming the weights that `rows` rows need."""
        touched = min(rows, ALL_TOUCHED)
        return min([self.weights, *(base + slope * touched for base, slope in self.streams)])

    def linear(self, rows: int) -> int:
        """L(M): time of everything that all rows of a step share, without the overhead."""
        ridge = (base + slope * rows for base, slope in self.ridge)
        return max(self.streamed(rows), self.row * rows, *ridge) + self.row_comm * rows

    @property
    def most_per_row(self) -> int:
        """No further row makes L longer by more than this, beyond w."""
        return max([self.row, *(slope for _, slope in self.ridge)]) + self.row_comm

    @property
    def most_shared(self) -> int:
        """The longest that L takes of what does not depend on rows."""
        return max([self.weights, *(base for base, _ in self.ridge)])

    @property
    def memory_rows(self) -> int:
        """The most rows that only stream the weights: up to them L is w + r·M."""
        lines = [(0, max(self.row, 1)), *((base, slope) for base, slope in self.ridge if slope)]
        return max(0, min((self.weights - base) // slope for base, slope in lines))

    def linear_column(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """`linear` of many steps at once (int64[steps])."""
        import numpy as np

        most = int(rows.max()) if len(rows) else 0
        if _FEW * (most + 1) < len(rows):
            return self.linear_column(np.arange(most + 1))[rows]
        shared = np.maximum(self.streamed_column(rows), self.row * rows)
        for base, slope in self.ridge:
            shared = np.maximum(shared, base + slope * rows)
        return shared + self.row_comm * rows

    def streamed_column(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """`streamed` of many steps at once (int64[steps])."""
        import numpy as np

        streamed = np.full_like(rows, self.weights)
        touched = np.minimum(rows, ALL_TOUCHED)
        for base, slope in self.streams:
            streamed = np.minimum(streamed, base + slope * touched)
        return streamed

    def attention(self, rows: int, context: int) -> int:
        """a_i of a sequence that computes `rows` new rows behind `context` tokens already in its cache."""
        seen = context + rows
        return max(self.kv_token * seen, self.attn_pair * pairs(rows, context))

    def prompt_part(self, number: int, prompts: int) -> int:
        """What the piece of a prompt with this number (from 0) bears of p, beside its attention; the parts sum to p."""
        return self.prompt * (number + 1) // prompts - self.prompt * number // prompts

    def step(self, rows: int, attention: int) -> int:
        """v(S) of a step with `rows` token rows in total and Σ a_i = `attention`."""
        return self.overhead + self.linear(rows) + attention

    def step_column(self, rows: NDArray[np.int64], attention: NDArray[np.int64] | int = 0) -> NDArray[np.int64]:
        """`step` of many steps at once (int64[steps])."""
        return self.overhead + self.linear_column(rows) + attention

    def flops(self, rows: int, row_pairs: int) -> int:
        """FLOPs of a step with `rows` rows and `row_pairs` (row, context token) pairs."""
        return self.flops_row * rows + self.flops_pair * row_pairs

    def bytes_read(self, kv_tokens: int, rows: int = ALL_TOUCHED) -> int:
        """Bytes that a step reads: the weights that `rows` rows need once, and the KV of `kv_tokens` tokens."""
        part = self.weight_bytes
        if self.streams:
            part = part * self.streamed(rows) // max(self.weights, 1)
        return part + self.kv_token_bytes * kv_tokens

    def to_json(self) -> str:
        """The constants as one JSON object, as kept in a run record."""
        constants = {name: value for name, value in asdict(self).items() if (name, value) not in _LEFT_OUT}
        return json.dumps(constants, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> StepModel:
        """Read what `to_json` wrote."""
        constants: dict[str, Any] = json.loads(text)
        streams, ridge = (tuple((base, slope) for base, slope in constants.pop(n, ())) for n in ("streams", "ridge"))
        return cls(**constants, streams=streams, ridge=ridge)


def stream_lines(points: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Lines for `StepModel.streams` through points (rows, units) of a concave w(M) with rising rows.

    Bases are never negative, so w(M)/M never rises.
    """
    lines: list[tuple[int, int]] = []
    for (rows, units), (more_rows, more_units) in pairwise(points):
        slope = max(0, min((more_units - units) // (more_rows - rows), units // rows))
        lines.append((units - slope * rows, slope))
    return tuple(lines)


def pairs(rows: int, context: int) -> int:
    """(row, context token) pairs of causal attention: each row sees the context, the rows before it and itself."""
    return rows * context + rows * (rows + 1) // 2


def to_units(seconds: float) -> int:
    """Seconds as clock units of 2⁻²⁰ ns, rounded to the nearest."""
    return round(seconds * 1e9 * UNITS_PER_NS)
