"""The load of a step: the rows that it computes, and whose they are."""

from __future__ import annotations

from dataclasses import dataclass

from ..events import PART_BITS, Account, Phase
from ..roofline.step_model import StepModel, pairs
from .cell import Cell, CellKey
from .riders import Chunk, Riders
from .sequence import Sequence


@dataclass(slots=True)
class Load:
    """Sums over the riders and rows of a step; attention in clock units, pairs and tokens as `StepModel` has them."""

    riders: int
    kv_blocks: int
    seqs: int
    rows: int
    attn: int
    row_pairs: int
    seen: int
    output_tokens: int
    decode_seqs: int
    decode_rows: int
    prefill_seqs: int
    prefill_rows: int
    cached_tokens: int
    recomputed_rows: int
    rejected_rows: int
    chunk_attn: list[int]
    """Attention of each chunk, in the schedule's order."""
    cells: dict[CellKey, Cell]

    @classmethod
    def of(cls, riders: Riders, chunks: list[Chunk], model: StepModel, token_units: int) -> Load:
        """Weigh a step of one row of every decoder and of `chunks`; a decode row costs `token_units` per token seen.

        What drafting for a sequence costs is counted with its attention: it depends on nobody else's rows.
        """
        n, seen = riders.decoders.seqs, riders.decoders.seen
        cells = {
            group.cell_key: Cell(
                seqs=group.seqs,
                rows=group.seqs,
                output_tokens=group.seqs,
                attn=token_units * group.seen,
                block_parts=(group.blocks << PART_BITS) + group.occupant.parts,
            )
            for group in riders.decoders.active
        }
        on_board, blocks = len(riders.running), riders.pool.used
        load = cls(on_board, blocks, n, n, token_units * seen, seen, seen, n, n, n, 0, 0, 0, 0, 0, [], cells)
        drafting = [0] * len(chunks) if riders.speculation is None else riders.speculation.draft_units(chunks)
        for chunk, draft_units, prompt in zip(chunks, drafting, _prompt_parts(chunks, model), strict=True):
            load._add(chunk, model, draft_units + prompt)
        for seq in riders.finished.values():
            load._cell(seq, "tenant", "decode").block_parts += _block_parts(seq)
        return load

    def _add(self, chunk: Chunk, model: StepModel, beside: int) -> None:
        """Add a chunk, whose attention is counted with what it costs beside: drafting, and a part of the prompts' p."""
        seq, rows = chunk.seq, chunk.rows
        attn = model.attention(rows, seq.num_computed) + beside
        recomputed = min(rows, max(0, seq.high_water - seq.num_computed))
        phase = _phase_of_new_rows(seq)
        decodes = rows - recomputed if phase == "decode" else 0

        self.seqs += 1
        self.rows += rows
        self.attn += attn
        self.chunk_attn.append(attn)
        self.row_pairs += pairs(rows, seq.num_computed)
        self.seen += seq.num_computed + rows
        self.output_tokens += chunk.output_tokens
        self.cached_tokens += chunk.cached_tokens
        self.rejected_rows += chunk.drafts - chunk.accepted
        self.recomputed_rows += recomputed
        self.decode_rows += decodes
        self.prefill_rows += rows - decodes
        self.decode_seqs += decodes > 0
        self.prefill_seqs += rows > decodes

        redo_attn = attn * recomputed // rows
        is_redo = 2 * recomputed > rows
        parts = _block_parts(seq)
        if recomputed:
            redo = self._cell(seq, "overhead", "prefill")
            _count(redo, recomputed, redo_attn, parts if is_redo else None)
        if rows > recomputed:
            cell = self._cell(seq, "tenant", phase)
            _count(cell, rows - recomputed, attn - redo_attn, None if is_redo else parts)
            cell.output_tokens += chunk.output_tokens
            cell.cached_tokens += chunk.cached_tokens

    def _cell(self, seq: Sequence, account: Account, phase: Phase) -> Cell:
        key = CellKey(account, seq.arrival.tenant_id, seq.arrival.tier, phase)
        return self.cells.setdefault(key, Cell())


def _prompt_parts(chunks: list[Chunk], model: StepModel) -> list[int]:
    """What each chunk bears of `StepModel.prompt`: those that compute rows of prompts, or again, share it evenly."""
    prefills = [chunk.seq.num_computed < max(chunk.seq.high_water, chunk.seq.arrival.prompt_tokens) for chunk in chunks]
    parts = iter([model.prompt_part(number, sum(prefills)) for number in range(sum(prefills))])
    return [next(parts) if prefill else 0 for prefill in prefills]


def _block_parts(seq: Sequence) -> int:
    """KV blocks of a sequence that does not decode, in 2⁻²⁰ blocks."""
    return (seq.own_blocks << PART_BITS) + seq.occupant.parts


def _phase_of_new_rows(seq: Sequence) -> Phase:
    """Rows above the prompt and above what was ever computed are decode rows."""
    return "decode" if max(seq.high_water, seq.num_computed) >= seq.arrival.prompt_tokens else "prefill"


def _count(cell: Cell, rows: int, attn: int, block_parts: int | None) -> None:
    """Add a sequence's rows to a cell; it is counted where it brings its blocks."""
    cell.rows += rows
    cell.attn += attn
    if block_parts is not None:
        cell.seqs += 1
        cell.block_parts += block_parts
