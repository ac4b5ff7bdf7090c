"""The riders: the sequences on board and the KV blocks that they hold."""

from __future__ import annotations

from typing import NamedTuple

from .block_pool import BlockPool
from .decoders import Decoders
from .sequence import Sequence
from .speculation import Speculation


class Chunk(NamedTuple):
    """Rows of one sequence that is not among the `Decoders`: a piece of its prompt, of a recomputation, or drafts."""

    seq: Sequence
    rows: int
    cached_tokens: int = 0
    """Prompt tokens before it that the prefix cache serves, and that the sequence never had before."""
    drafts: int = 0
    """How many of its rows, at its end, verify drafted tokens."""
    accepted: int = 0
    """How many of these are right and wanted."""

    @property
    def completes(self) -> bool:
        """Whether it reaches the sequence's newest token, so that the next one is sampled."""
        return self.seq.num_computed + self.rows - self.drafts == self.seq.num_tokens

    @property
    def output_tokens(self) -> int:
        """Tokens that it yields."""
        return self.accepted + 1 if self.completes and self.seq.target else 0


class Rest(NamedTuple):
    """What a step would be like without some of the riders."""

    rows: int
    """The most rows that the others can use."""
    free: int
    """KV blocks that would be left, if the riders who are gone shared none."""


class Riders:
    """The sequences on board, in the order in which they boarded: those that decode, and those that still prefill.

    With speculation everybody stays among the latter: steps yield different numbers of tokens, so sums do not tell.
    """

    def __init__(self, pool: BlockPool, decoders: Decoders, speculation: Speculation | None) -> None:
        self.pool = pool
        self.decoders = decoders
        self.speculation = speculation
        self.running: dict[str, Sequence] = {}
        self.prefilling: list[Sequence] = []
        self.finished: dict[str, Sequence] = {}
        """Those whose last row is on its way: they compute nothing more, and keep their seats until it is back."""
        self._fast: dict[str, Sequence] = {}
        self._batch: dict[str, Sequence] = {}
        self._boardings = 0

    def __len__(self) -> int:
        return len(self.running)

    def __contains__(self, seq: Sequence) -> bool:
        return seq.request_id in self.running

    @property
    def newest(self) -> Sequence:
        """Who boarded last: of the tier `batch`, which rides in what is left, if any of it is on board."""
        lane = self._batch or self.running
        return lane[next(reversed(lane))]

    @property
    def last(self) -> Sequence:
        """Who has the worst rank, and of those the latest arrival."""
        return max(self.running.values(), key=lambda seq: (seq.rank, seq.number))

    @property
    def fast(self) -> Sequence | None:
        """The fast request that has been on board longest; None: there is none."""
        return next(iter(self._fast.values()), None)

    @property
    def batch(self) -> list[Sequence]:
        """Those of the tier `batch`, in the order in which they boarded."""
        return list(self._batch.values())

    def board(self, seq: Sequence) -> None:
        """Give a sequence a seat."""
        self._boardings += 1
        seq.boarded = self._boardings
        self.running[seq.request_id] = seq
        self.prefilling.append(seq)
        if seq.arrival.tier == "fast":
            self._fast[seq.request_id] = seq
        elif seq.arrival.tier == "batch":
            self._batch[seq.request_id] = seq

    def leave(self, seq: Sequence) -> None:
        """Free a sequence's seat and its KV blocks."""
        self._give_up_seat(seq)
        self.pool.release(seq.prefix, seq.blocks)

    def put_off(self, seq: Sequence) -> bool:
        """Free the seat and the KV blocks of a sequence; what it computed may still be there when it boards again.

        Returns whether it has anything left to board for.
        """
        finished = seq.request_id in self.finished
        self._give_up_seat(seq)
        self.pool.release(seq.prefix, seq.blocks, seq.num_computed // self.pool.block_size)
        seq.preempt()
        return not finished

    def finish(self, seq: Sequence) -> None:
        """A sequence's last row has been scheduled: it keeps its seat and its KV blocks until it leaves."""
        self._stop_computing(seq)
        self.finished[seq.request_id] = seq
        self.pool.hand_over(seq.prefix, seq.occupant)

    def begin_decoding(self, seq: Sequence) -> None:
        """From the coming step on, a sequence generates at least one token per step."""
        if self.speculation is not None:
            seq.drafts = self.speculation.num_speculative_tokens
            return
        self.prefilling.remove(seq)
        self.pool.hand_over(seq.prefix, self.decoders.join(seq))

    def chunk(self, seq: Sequence, budget: int, behind: int) -> Chunk:
        """The rows that a prefilling sequence has left, as far as the budget goes.

        Drafts leave a row to everybody of the `behind` riders that come after it.
        """
        left = seq.num_tokens - seq.num_computed
        rows = min(left, budget)
        drafts = max(0, min(seq.drafts, budget - rows - behind)) if rows == left else 0
        return Chunk(seq, rows + drafts, drafts=drafts)

    def chunks(self, budget: int) -> list[Chunk]:
        """The next chunks of all who prefill, in boarding order, until `budget` rows are given out."""
        chunks: list[Chunk] = []
        for behind, seq in zip(range(len(self.prefilling))[::-1], self.prefilling, strict=True):
            if not budget:
                break
            chunk = self.chunk(seq, budget, behind)
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

    def without(self, seqs: list[Sequence], chunks: list[Chunk]) -> Rest:
        """What the coming step would be like without some of the riders; `chunks` are those of all who prefill."""
        gone = {seq.request_id for seq in seqs}
        rows = self.decoders.seqs - sum(seq.decoding_in is not None for seq in seqs)
        rows += sum(s.num_tokens - s.num_computed + s.drafts for s in self.prefilling if s.request_id not in gone)
        blocks = sum(self.decoders.blocks(seq) for seq in seqs)
        blocks += sum(self._growth(chunk) for chunk in chunks if chunk.seq.request_id in gone)
        return Rest(rows, self.pool.free - self.blocks_needed(chunks) + blocks)

    def allocate_decodes(self) -> None:
        """Allocate the blocks of every decoder's next row."""
        self.pool.allocate(self.decoders.allocate())

    def prefill(self, seq: Sequence, budget: int, behind: int = 0) -> Chunk:
        """Schedule a sequence's next chunk: take what is cached before its first, allocate and publish its blocks."""
        cached_tokens = 0 if seq.num_computed else self._take_hits(seq)
        chunk = self.chunk(seq, budget, behind)._replace(cached_tokens=cached_tokens)
        if chunk.drafts and self.speculation is not None:
            right = self.speculation.accepted(seq.draft_key, seq.num_output, chunk.drafts)
            chunk = chunk._replace(accepted=min(right, seq.target - seq.num_output - 1))
        growth = self._growth(chunk)
        self.pool.allocate(growth)
        seq.blocks += growth
        self.pool.publish(seq.prefix, (seq.num_computed + chunk.rows - chunk.drafts) // self.pool.block_size)
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
        self._batch.pop(seq.request_id, None)
        if self.finished.pop(seq.request_id, None) is None:
            self._stop_computing(seq)

    def _stop_computing(self, seq: Sequence) -> None:
        if seq.decoding_in is None:
            self.prefilling.remove(seq)
        else:
            self.decoders.leave(seq)

    def _growth(self, chunk: Chunk) -> int:
        return max(0, self.pool.blocks_for(chunk.seq.num_computed + chunk.rows) - chunk.seq.blocks)
