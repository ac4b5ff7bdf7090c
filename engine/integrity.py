"""The engine's self-check."""

from __future__ import annotations

from collections.abc import Iterable

from .cell import CellKey
from .decoders import Decoders
from .errors import IntegrityError
from .riders import Riders
from .sequence import Sequence
from .waiting import WaitingQueue


def check_integrity(served: dict[str, Sequence], waiting: WaitingQueue, riders: Riders) -> None:
    """Recount everything from the sequences themselves; raises `IntegrityError` on the first thing that is off."""
    on_board, queued = list(riders.running.values()), list(waiting)
    decoding = [seq for seq in on_board if seq.decoding_in is not None]
    for seq in decoding:
        riders.decoders.settle(seq)
    _same("requests in one place each", sorted(served), sorted(seq.request_id for seq in on_board + queued))
    _same("riders", [s for s in on_board if s.decoding_in is None], riders.prefilling)
    _same("KV blocks of those who wait", sum(seq.blocks for seq in queued), 0)
    _same("KV blocks in use", sum(seq.blocks for seq in on_board), riders.pool.used)
    for seq in on_board:
        _same(f"KV blocks of {seq.request_id}", riders.pool.blocks_for(seq.num_computed), seq.blocks)
    for seq in decoding:
        _same(f"tokens left of {seq.request_id}", seq.num_tokens - seq.num_computed, 1)
    _check_sums(riders.decoders, decoding)


def _check_sums(decoders: Decoders, decoding: Iterable[Sequence]) -> None:
    sums: dict[CellKey, tuple[int, int, int]] = {}
    for seq in decoding:
        key = CellKey("tenant", seq.arrival.tenant_id, seq.arrival.tier, "decode")
        seqs, seen, blocks = sums.get(key, (0, 0, 0))
        sums[key] = (seqs + 1, seen + seq.num_computed + 1, blocks + seq.blocks)
    kept = {group.cell_key: (group.seqs, group.seen, group.blocks) for group in decoders.active}
    _same("sums of the decoders by tenant", sums, kept)
    _same("order of the groups", list(kept), sorted(kept))
    totals = tuple(sum(column) for column in zip(*sums.values(), strict=True)) or (0, 0, 0)
    _same("sums of the decoders", totals[:2], (decoders.seqs, decoders.seen))


def _same(what: str, counted: object, kept: object) -> None:
    if counted != kept:
        raise IntegrityError(f"{what}: counted {counted}, kept {kept}")
