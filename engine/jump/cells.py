"""Cells: what each tenant, tier and phase did in each step of a segment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...events import PART_BITS, Tier
from ..cell import CellKey
from .chunks import Chunks
from .decode_rows import Bools, DecodeRows, Ints


class CellColumns(NamedTuple):
    """Cells by step and key, int64[cells]; see `Share`."""

    step: Ints
    key: Ints
    """Which of `cell_keys`."""
    seqs: Ints
    rows: Ints
    output_tokens: Ints
    cached_tokens: Ints
    attn: Ints
    blocks: Ints
    """KV blocks that are not hashed."""
    parts: Ints
    """Its part of the hashed ones, in 2⁻²⁰."""


def cell_keys(groups: Sequence[tuple[str, Tier]]) -> list[CellKey]:
    """What a cell's `key` stands for, in cell order, for groups in their order: overhead, then decode and prefill."""
    overhead = [CellKey("overhead", tenant, tier, "prefill") for tenant, tier in groups]
    return overhead + [
        CellKey("tenant", tenant, tier, phase) for tenant, tier in groups for phase in ("decode", "prefill")
    ]


def cells_of(
    decodes: DecodeRows, parts: Ints, chunks: Chunks, groups: int, token_units: int, block_size: int
) -> CellColumns:
    """The cells of decode rows and chunks, whose `group` is one of `groups` in their order.

    `parts` (int64[decode rows]) is each decode row's part of hashed KV blocks.
    """
    n, zeros = decodes.seqs, np.zeros_like(decodes.seqs)
    key = decodes.group * 2 + groups
    decoding = CellColumns(decodes.step, key, n, n, n, zeros, token_units * decodes.seen, decodes.blocks, parts)
    if groups > 1:
        order = np.argsort(_narrow(decodes.step), kind="stable")
        decoding = CellColumns(*(column[order] for column in decoding))
    if not len(chunks.step):
        return decoding
    return _merge(decoding, _summed(_chunk_cells(chunks, groups, block_size), 3 * groups), 3 * groups)


def _chunk_cells(chunks: Chunks, groups: int, block_size: int) -> CellColumns:
    """One or two cells of each chunk: what it redoes, and what it does. It counts where most of its rows are."""
    redo = 2 * chunks.redone > chunks.rows
    blocks, ones = chunks.blocks(block_size), np.ones_like(chunks.step)
    redone_attn = chunks.redone_attn
    own = CellColumns(
        chunks.step,
        chunks.group * 2 + groups + ~chunks.decodes,
        np.where(redo, 0, ones),
        chunks.rows - chunks.redone,
        chunks.sampled.astype(np.int64),
        chunks.cached,
        chunks.attn - redone_attn,
        np.where(redo, 0, blocks),
        np.where(redo, 0, chunks.parts),
    )
    if not chunks.redone.any():
        return own
    overhead = CellColumns(
        chunks.step,
        chunks.group,
        redo.astype(np.int64),
        chunks.redone,
        np.zeros_like(ones),
        np.zeros_like(ones),
        redone_attn,
        np.where(redo, blocks, 0),
        np.where(redo, chunks.parts, 0),
    )
    both = CellColumns(*(np.concatenate(columns) for columns in zip(overhead, own, strict=True)))
    return _where(both, both.rows > 0)


def _summed(cells: CellColumns, keys: int) -> CellColumns:
    """Cells by step and key, those that are equal in both added up."""
    place = cells.step * keys + cells.key
    order = np.argsort(place, kind="stable")
    place = place[order]
    starts = np.flatnonzero(np.append(True, place[1:] != place[:-1]))
    step, key = np.divmod(place[starts], keys)
    return CellColumns(step, key, *(np.add.reduceat(column[order], starts) for column in cells[2:]))


def _merge(decoding: CellColumns, others: CellColumns, keys: int) -> CellColumns:
    """Both in one order; what is in both is added up."""
    places, new = (cells.step * keys + cells.key for cells in (decoding, others))
    at = np.searchsorted(places, new)
    twice = np.zeros(len(new), np.bool_)
    inside = at < len(places)
    twice[inside] = places[at[inside]] == new[inside]
    if twice.any():
        decoding = CellColumns(*(column.copy() for column in decoding))
        for into, column in zip(decoding[2:], others[2:], strict=True):
            into[at[twice]] += column[twice]
        at, others = at[~twice], _where(others, ~twice)
    added = at + np.arange(len(at))
    kept = np.ones(len(places) + len(at), np.bool_)
    kept[added] = False
    kept = np.flatnonzero(kept)
    merged: dict[int, Ints] = {}  # columns of decoders that are the same array are laid out once
    columns: list[Ints] = []
    for column, more in zip(decoding, others, strict=True):
        if id(column) not in merged:
            both = merged[id(column)] = np.empty(len(kept) + len(added), np.int64)
            both[kept] = column
        columns.append(merged[id(column)].copy())
        columns[-1][added] = more
    return CellColumns(*columns)


def _where(cells: CellColumns, rows: Bools) -> CellColumns:
    return CellColumns(*(column[rows] for column in cells))


def _narrow(steps: Ints) -> Any:
    """Step numbers in as few bits as they need: 16 bits are sorted by their digits."""
    return steps.astype(np.uint16) if len(steps) and int(steps.max()) < 1 << 16 else steps


def block_ns(cells: CellColumns, duration_ns: Ints) -> Ints:
    """KV blocks × time of each cell: floor-differences over the cells of a step, which last `duration_ns`."""
    duration = duration_ns[cells.step]
    if not cells.parts.any():
        return cells.blocks * duration
    summed = np.cumsum((cells.blocks << PART_BITS) + cells.parts)
    first = np.append(True, cells.step[1:] != cells.step[:-1])
    before = np.append(0, summed[:-1])
    until = summed - before[first][np.cumsum(first) - 1]
    whole = (until >> PART_BITS) * duration + ((until & ((1 << PART_BITS) - 1)) * duration >> PART_BITS)
    return whole - np.where(first, 0, np.append(0, whole[:-1]))
