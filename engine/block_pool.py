"""The pool of KV cache blocks."""

from __future__ import annotations

from typing import NamedTuple

from .errors import IntegrityError
from .prefix import Prefix
from .segment import Occupant


class Hits(NamedTuple):
    """Cached blocks at the head of a sequence. Those that nobody holds (`blocks - held`) count as free until taken."""

    blocks: int
    held: int


class BlockPool:
    """Counts the blocks in use. Blocks have no identity here: nothing is cached, nothing is shared.

    The methods that take a `Prefix` are the interface of the `PrefixCache`; here they find nothing and keep nothing.
    """

    __slots__ = ("block_size", "free", "total")

    def __init__(self, total: int, block_size: int) -> None:
        self.total = total
        self.block_size = block_size
        self.free: int = total

    @property
    def used(self) -> int:
        """Blocks that somebody holds, a shared one counted once."""
        return self.total - self.free

    def blocks_for(self, tokens: int) -> int:
        """Blocks that `tokens` tokens fill, the last one perhaps in part."""
        return -(-tokens // self.block_size)

    def allocate(self, blocks: int) -> None:
        """Take blocks out of the pool; raises `IntegrityError` when there are not as many."""
        if blocks > self.free:
            raise IntegrityError(f"{blocks} KV blocks wanted, {self.free} free")
        self.free -= blocks

    def release(self, prefix: Prefix, blocks: int, full: int = 0) -> None:
        """Give back the `blocks` blocks of a sequence; of one that will come back, the first `full` are kept findable.

        Raises:
            IntegrityError: fewer are in use.
        """
        if blocks > self.used:
            raise IntegrityError(f"{blocks} KV blocks given back, {self.used} in use")
        self.free += blocks

    def prefix(self, prompt_tokens: int, ids: tuple[int, ...] | None) -> Prefix:
        """The prefix of a new sequence: the ids of its prompt's blocks, as far as they are full."""
        return Prefix()

    def hits(self, prefix: Prefix, most: int) -> Hits:
        """How much of a sequence that holds nothing is cached, up to `most` blocks."""
        return Hits(0, 0)

    def take_hits(self, prefix: Prefix, most: int, occupant: Occupant) -> int:
        """Let a sequence that holds nothing hold its hits, on `occupant`'s account; returns their number."""
        return 0

    def publish(self, prefix: Prefix, full: int) -> None:
        """Hash the first `full` blocks of a sequence, as far as they have ids, so that others find them."""

    def hand_over(self, prefix: Prefix, occupant: Occupant) -> None:
        """Move what a sequence holds to another occupant's account."""
