"""A cell of a step: the rows of one tenant, tier and phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..events import Account, Phase, Tier


class CellKey(NamedTuple):
    """What a step's rows are grouped by, in the order in which cells are told."""

    account: Account
    tenant_id: str
    tier: Tier
    phase: Phase


@dataclass(slots=True)
class Cell:
    """Sums over the rows of one cell of a step."""

    seqs: int = 0
    rows: int = 0
    output_tokens: int = 0
    attn: int = 0
    cached_tokens: int = 0
    block_parts: int = 0
    """KV blocks held, in 2⁻²⁰ blocks: a shared one counts by its sharers."""
