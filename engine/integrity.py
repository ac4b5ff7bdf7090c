"""The engine's self-check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..events import PART_BITS
from .cell import CellKey
from .decoders import Decoders
from .errors import IntegrityError
from .prefix_cache import PrefixCache
from .riders import Riders
from .segment import Occupant
from .sequence import Sequence
from .waiting import WaitingQueue

_Block = tuple[int, int]
"""A prefix id, and the number of a block of it in every sequence that has it."""


def check_integrity(served: dict[str, Sequence], waiting: WaitingQueue, riders: Riders) -> None:
    """Recount everything from the sequences themselves; raises `IntegrityError` on the first thing that is off."""
    on_board, queued = list(riders.running.values()), list(waiting)
    decoding = [seq for seq in on_board if seq.decoding_in is not None]
    for seq in decoding:
        riders.decoders.settle(seq)
    _same("requests in one place each", sorted(served), sorted(seq.request_id for seq in on_board + queued))
    computing = [seq for seq in on_board if seq.request_id not in riders.finished]
    _same("riders", [s for s in computing if s.decoding_in is None], riders.prefilling)
    _same("KV blocks of those who wait", sum(seq.blocks + seq.prefix.held for seq in queued), 0)
    for seq in computing:
        _check_tokens(seq, riders)
    for seq in decoding:
        _same(f"tokens left of {seq.request_id}", seq.num_tokens - seq.num_computed, 1)
    _check_sums(riders.decoders, decoding)
    own_blocks = sum(seq.own_blocks for seq in on_board)
    if isinstance(riders.pool, PrefixCache):
        _check_cache(riders.pool, on_board, own_blocks)
    else:
        _same("KV blocks in use", own_blocks, riders.pool.used)


def _check_tokens(seq: Sequence, riders: Riders) -> None:
    """A rider has a token to compute and one to sample, and KV blocks for what it has, at most for drafts besides."""
    lookahead = 0 if riders.speculation is None else riders.speculation.num_speculative_tokens
    fewest, most = (riders.pool.blocks_for(seq.num_computed + more) for more in (0, lookahead))
    _same(f"KV blocks of {seq.request_id}", min(max(seq.blocks, fewest), most), seq.blocks)
    _same(f"whether {seq.request_id} has tokens to compute", seq.num_computed < seq.num_tokens, True)
    _same(f"whether {seq.request_id} has tokens to sample", seq.num_output < max(1, seq.target), True)


def _check_sums(decoders: Decoders, decoding: Iterable[Sequence]) -> None:
    sums: dict[CellKey, tuple[int, int, int]] = {}
    for seq in decoding:
        key = CellKey("tenant", seq.arrival.tenant_id, seq.arrival.tier, "decode")
        seqs, seen, blocks = sums.get(key, (0, 0, 0))
        sums[key] = (seqs + 1, seen + seq.num_computed + 1, blocks + seq.own_blocks)
    kept = {group.cell_key: (group.seqs, group.seen, group.blocks) for group in decoders.active}
    _same("sums of the decoders by tenant", sums, kept)
    _same("order of the groups", list(kept), sorted(kept))
    totals = tuple(sum(column) for column in zip(*sums.values(), strict=True)) or (0, 0, 0)
    _same("sums of the decoders", totals[:2], (decoders.seqs, decoders.seen))


def _check_cache(cache: PrefixCache, on_board: list[Sequence], own_blocks: int) -> None:
    """Every block is free, somebody's own, or shared by exactly those whose prefix reaches so far."""
    sharers = Counter(
        (block, seq.prefix.occupant) for seq in on_board for block in _blocks(cache, seq.prefix.ids, 0, seq.prefix.held)
    )
    _same("KV blocks in use", own_blocks + len({block for block, _ in sharers}), cache.used)
    _same("free KV blocks", sum(segment.size for segment in cache.queue), cache.free)
    counted: Counter[tuple[_Block, Occupant | None]] = Counter()
    parts: Counter[Occupant] = Counter()
    free = {segment for segment in cache.queue if segment.ids}
    for segment in cache.segments:
        _same(f"whether prefix {segment.ids} is free", segment in free, not segment.owners)
        blocks = _blocks(cache, segment.ids, segment.start, segment.start + segment.size)
        counted.update({(block, owner): count for block in blocks for owner, count in segment.owners.items()})
        part, rest = divmod(1 << PART_BITS, sum(segment.owners.values()) or 1)
        parts.update({owner: segment.size * part * sharers for owner, sharers in segment.owners.items()})
        parts.update(dict.fromkeys(list(segment.owners)[:1], segment.size * rest))
    _same("sharers of the cached blocks", sharers, counted)
    for owner, kept in [(owner, owner.parts) for _, owner in sharers if owner is not None]:
        _same("part of the shared blocks", parts[owner], kept)


def _blocks(cache: PrefixCache, ids: tuple[int, ...], start: int, end: int) -> list[_Block]:
    """Blocks `start` to `end` of a sequence whose ids from `start` on are these."""
    first = start // cache.blocks_per_id
    return [(ids[number // cache.blocks_per_id - first], number) for number in range(start, end)]


def _same(what: str, counted: object, kept: object) -> None:
    if counted != kept:
        raise IntegrityError(f"{what}: counted {counted}, kept {kept}")
