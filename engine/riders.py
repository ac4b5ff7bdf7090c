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
    cached_tokens: int = 0
    """Prompt tokens before it that the prefix cache serves, and that the sequence never had before."""

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
        self._boardings = 0

    def __len__(self) -> int:
        return len(self.running)

    def __contains__(self, seq: Sequence) -> bool:
        return seq.request_id in self.running

    @property
    def newest(self) -> Sequence:
        """Who boarded last."""
        return self.running[next(reversed(self.running))]

    @property
    def last(self) -> Sequence:
        """Who has the worst rank, and of those the latest arrival."""
        return max(self.running.values(), key=lambda seq: (seq.rank, seq.number))

    @property
    def fast(self) -> Sequence | None:
        """The fast request that has been on board longest; None: there is none."""
        return next(iter(self._fast.values()), None)

    def board(self, seq: Sequence) -> None:
        """Give a sequence a seat."""
        self._boardings += 1
        seq.boarded = self._boardings
        self.running[seq.request_id] = seq
        self.prefilling.append(seq)
        if seq.arrival.tier == "fast":
            self._fast[seq.request_id] = seq

    def leave(self, seq: Sequence) -> None:
        """Free a sequence's seat and its KV blocks."""
        self._give_up_seat(seq)
        self.pool.release(seq.prefix, seq.blocks)

    def put_off(self, seq: Sequence) -> None:
        """Free the seat and the KV blocks of a sequence that will board again; what it computed may still be there."""
        self._give_up_seat(seq)
        self.pool.release(seq.prefix, seq.blocks, seq.num_computed // self.pool.block_size)
        seq.preempt()

    def begin_decoding(self, seq: Sequence) -> None:
        """From the coming step on, a sequence generates one token per step."""
        self.prefilling.remove(seq)
        self.pool.hand_over(seq.prefix, self.decoders.join(seq))

    def chunk(self, seq: Sequence, budget: int, cached_tokens: int = 0) -> Chunk:
        """The rows that a prefilling sequence has left, as far as the budget goes."""
        return Chunk(seq, min(seq.num_tokens - seq.num_computed, budget), cached_tokens)

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

    def blocks_to_board(self, seq: Sequence) -> int:
        """Free KV blocks that all tokens of a waiting sequence would take, hits that nobody holds included."""
        hits = self.pool.hits(seq.prefix, self._most_hits(seq))
        return self.pool.blocks_for(seq.num_tokens) - hits.held

    def allocate_decodes(self) -> None:
        """Allocate the blocks of every decoder's next row."""
        self.pool.allocate(self.decoders.allocate())

    def prefill(self, seq: Sequence, budget: int) -> Chunk:
        """Schedule a sequence's next chunk: take what is cached before its first, allocate and publish its blocks."""
        chunk = self.chunk(seq, budget, 0 if seq.num_computed else self._take_hits(seq))
        growth = self._growth(chunk)
        self.pool.allocate(growth)
        seq.blocks += growth
        self.pool.publish(seq.prefix, (seq.num_computed + chunk.rows) // self.pool.block_size)
        return chunk

    def _take_hits(self, seq: Sequence) -> int:
        """Start from what is cached of a sequence. Returns how many of these tokens are new to it."""
        seq.blocks = self.pool.take_hits(seq.prefix, self._most_hits(seq), seq.occupant)
        seq.num_computed = seq.blocks * self.pool.block_size
        cached_tokens = max(0, seq.num_computed - seq.high_water)
        seq.cached_tokens += cached_tokens
        return cached_tokens

    def _most_hits(self, seq: Sequence) -> int:
        """Blocks that may be hits: at least the last token is computed, since its logits are needed."""
        return (seq.num_tokens - 1) // self.pool.block_size

    def _give_up_seat(self, seq: Sequence) -> None:
        del self.running[seq.request_id]
        self._fast.pop(seq.request_id, None)
        if seq.decoding_in is None:
            self.prefilling.remove(seq)
        else:
            self.decoders.leave(seq)

    def _growth(self, chunk: Chunk) -> int:
        return self.pool.blocks_for(chunk.seq.num_computed + chunk.rows) - chunk.seq.blocks
