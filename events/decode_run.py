"""A run of decode steps: many steps alike, told as one."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from .request import Tier
from .sink import Sink

PART_BITS = 20
"""Parts of a KV block that sequences share are counted in 2⁻²⁰."""


class DecodeGroup(NamedTuple):
    """The decoding sequences of one tenant and tier, as they enter a run."""

    tenant_id: str
    tier: Tier
    seqs: int
    seen: int
    """Σ tokens that the first step's rows look at, themselves included; each step adds `seqs`."""
    blocks: int
    """KV blocks held before the first step, those that have no prefix id."""
    shared_parts: int
    """Their part of the KV blocks that prefixes share, in 2⁻²⁰ blocks; it stays as it is."""
    crossings: tuple[int, ...]
    """KV blocks that step j adds, at j mod block size."""


class DecodeRun(NamedTuple):
    """Consecutive steps in which the same sequences decode and nothing else happens.

    Step j lasts `base_units + token_units · (seen + j · seqs)` clock units of 2⁻²⁰ ns, where `seen` and `seqs` are the
    groups' sums. Times start `clock` units after `base_ns` (UTC).
    """

    first_seq: int
    steps: int
    base_ns: int
    clock: int
    base_units: int
    token_units: int
    idle_before_ns: int
    waiting: int
    held_by: str | None
    kv_blocks_total: int
    groups: tuple[DecodeGroup, ...]


@runtime_checkable
class DecodeSink(Sink, Protocol):
    """A sink that takes runs of decode steps as well, and so lets an engine leap over them."""

    def decodes(self, run: DecodeRun) -> None:
        """A run of decode steps ended; one append, like `step`."""
        ...
