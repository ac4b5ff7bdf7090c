"""How long a step takes: weights streamed once, rows computed, every sequence's KV read.

    v(S) = o + max(w, c·M) + r·M + Σ a_i        a_i = max(KV bytes read / bandwidth, attention FLOPs / FLOP rate)

All constants are integers in clock units of 2⁻²⁰ ns, rounded once, so that a step time is the same integer wherever
it is computed and durations never drift.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

UNIT_BITS = 20
UNITS_PER_NS = 1 << UNIT_BITS


@dataclass(frozen=True, slots=True)
class StepModel:
    """Constants of one model on one replica (all its GPUs together, working in lock step).

    Times are in clock units (2⁻²⁰ ns); `flops_*` and `*_bytes` are physical, summed over the GPUs.
    """

    overhead: int
    """o: launch, scheduling and all-reduce latency of one step."""
    weights: int
    """w: streaming the weights once."""
    row: int
    """c: linear layers for one token row."""
    row_comm: int
    """r: all-reduce traffic for one token row."""
    kv_token: int
    """Reading the KV of one token of context."""
    attn_pair: int
    """Attention arithmetic of one (row, context token) pair."""
    weight_bytes: int
    kv_token_bytes: int
    flops_row: int
    flops_pair: int

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

    def linear(self, rows: int) -> int:
        """Time of everything that all rows of a step share, without the overhead: max(w, c·M) + r·M."""
        return max(self.weights, self.row * rows) + self.row_comm * rows

    def attention(self, rows: int, context: int) -> int:
        """a_i of a sequence that computes `rows` new rows behind `context` tokens already in its cache."""
        seen = context + rows
        return max(self.kv_token * seen, self.attn_pair * pairs(rows, context))

    def step(self, rows: int, attention: int) -> int:
        """v(S) of a step with `rows` token rows in total and Σ a_i = `attention`."""
        return self.overhead + self.linear(rows) + attention

    def flops(self, rows: int, row_pairs: int) -> int:
        """FLOPs of a step with `rows` rows and `row_pairs` (row, context token) pairs."""
        return self.flops_row * rows + self.flops_pair * row_pairs

    def bytes_read(self, kv_tokens: int) -> int:
        """Bytes that a step reads: the weights once, and the KV of `kv_tokens` tokens."""
        return self.weight_bytes + self.kv_token_bytes * kv_tokens

    def to_json(self) -> str:
        """The constants as one JSON object, as kept in a run record."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> StepModel:
        """Read what `to_json` wrote."""
        return cls(**json.loads(text))


def pairs(rows: int, context: int) -> int:
    """(row, context token) pairs of causal attention: each row sees the context, the rows before it and itself."""
    return rows * context + rows * (rows + 1) // 2


def to_units(seconds: float) -> int:
    """Seconds as clock units of 2⁻²⁰ ns, rounded to the nearest."""
    return round(seconds * 1e9 * UNITS_PER_NS)
