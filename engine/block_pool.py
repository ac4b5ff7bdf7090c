"""The pool of KV cache blocks."""

from .errors import IntegrityError


class BlockPool:
    """Counts the blocks in use. Blocks have no identity here: nothing is shared between requests."""

    __slots__ = ("block_size", "free", "total")

    def __init__(self, total: int, block_size: int) -> None:
        self.total = total
        self.block_size = block_size
        self.free = total

    @property
    def used(self) -> int:
        """Blocks that somebody holds."""
        return self.total - self.free

    def blocks_for(self, tokens: int) -> int:
        """Blocks that `tokens` tokens fill, the last one perhaps in part."""
        return -(-tokens // self.block_size)

    def allocate(self, blocks: int) -> None:
        """Take blocks out of the pool; raises `IntegrityError` when there are not as many."""
        if blocks > self.free:
            raise IntegrityError(f"{blocks} KV blocks wanted, {self.free} free")
        self.free -= blocks

    def release(self, blocks: int) -> None:
        """Give blocks back; raises `IntegrityError` when fewer are in use."""
        if blocks > self.used:
            raise IntegrityError(f"{blocks} KV blocks given back, {self.used} in use")
        self.free += blocks
