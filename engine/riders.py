"""The riders: the sequences on board and the KV blocks that they hold."""

from __future__ import annotations

from typing import NamedTuple

from .block_pool import BlockPool
from .decoders import Decoders
from .sequence import Sequence


class Chunk(NamedTuple):
    """Rows of one sequence that does not (or not yet again) decode: a piece of its prompt, or of a recomputation."""

    seq: Sequence
    rows: int

    @property
    def completes(self) -> bool:
        """Whether it reaches the sequence's newest token, so that the next one is sampled."""
        return self.seq.num_computed + self.rows == self.seq.num_tokens


class Riders:
    """The sequences on board, in the order in which they boarded: those that decode, and those that still prefill."""

    def __init__(self, pool: BlockPool, decoders: Decoders) -> None:
        self.pool = pool
        self.decoders = decoders
        self.running: dict[str, Sequence] = {}
        self.prefilling: list[Sequence] = []
        self._fast: dict[str, Sequence] = {}

    def __len__(self) -> int:
        return len(self.running)

    def __contains__(self, seq: Sequence) -> bool:
        return seq.request_id in self.running

    @property
    def newest(self) -> Sequence:
        """Who boarded last."""
        return self.running[next(reversed(self.running))]

    @property
    def fast(self) -> Sequence | None:
        """The fast request that has been on board longest; None: there is none."""
        return next(iter(self._fast.values()), None)

    def board(self, seq: Sequence) -> None:
        """Give a sequence a seat."""
        self.running[seq.request_id] = seq
        self.prefilling.append(seq)
        if seq.arrival.tier == "fast":
            self._fast[seq.request_id] = seq

    def leave(self, seq: Sequence) -> None:
        """Free a sequence's seat and its KV blocks."""
        del self.running[seq.request_id]
        self._fast.pop(seq.request_id, None)
        if seq.decoding_in is None:
            self.prefilling.remove(seq)
        else:
            self.decoders.leave(seq)
        self.pool.release(seq.blocks)

    def begin_decoding(self, seq: Sequence) -> None:
        """From the coming step on, a sequence generates one token per step."""
        self.prefilling.remove(seq)
        self.decoders.join(seq)

    def chunk(self, seq: Sequence, budget: int) -> Chunk:
        """The rows that a prefilling sequence has left, as far as the budget goes."""
        return Chunk(seq, min(seq.num_tokens - seq.num_computed, budget))

    def chunks(self, budget: int) -> list[Chunk]:
        """The next chunks of all who prefill, in boarding order, until `budget` rows are given out."""
        chunks: list[Chunk] = []
        for seq in self.prefilling:
            if not budget:
                break
            chunk = self.chunk(seq, budget)
            budget -= chunk.rows
            chunks.append(chunk)
        return chunks

    def blocks_needed(self, chunks: list[Chunk]) -> int:
        """KV blocks that one more row of every decoder and these chunks need."""
        return self.decoders.blocks_needed + sum(self._growth(chunk) for chunk in chunks)

    def allocate_decodes(self) -> None:
        """Allocate the blocks of every decoder's next row."""
        self.pool.allocate(self.decoders.allocate())

    def allocate_chunk(self, chunk: Chunk) -> None:
        """Allocate the blocks of a chunk's rows."""
        growth = self._growth(chunk)
        self.pool.allocate(growth)
        chunk.seq.blocks += growth

    def _growth(self, chunk: Chunk) -> int:
        return self.pool.blocks_for(chunk.seq.num_computed + chunk.rows) - chunk.seq.blocks
