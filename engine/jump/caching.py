"""The jump engine with a prefix cache."""

from __future__ import annotations

from collections.abc import Iterable

from ..arrival import Arrival
from ..config import EngineConfig
from ..prefix import Occupant, Prefix
from ..prefix_cache import PrefixCache
from .engine import NO_PAST, JumpEngine
from .log import BOARDS, ENDS


class CachingJumpEngine(JumpEngine):
    """Takes and gives back KV blocks in the order in which `Engine` does, so that the same ones are found again.

    Decoders' own blocks are allotted in one go, up to the coming step, before anything else happens to the pool.
    """

    def __init__(self, config: EngineConfig, first: Arrival, rest: Iterable[Arrival]) -> None:
        super().__init__(config, first, rest)
        self._can_cruise = False
        self._pool = PrefixCache(config.usable_blocks, config.block_size, config.prefix_block_tokens)
        self._prefixes: dict[int, Prefix] = {}
        self._riding: dict[int, Occupant] = {}
        """The account of each who prefills."""
        self._deciding: list[Occupant] = []
        """The account of each group of decoders."""
        self._own = 0
        """KV blocks without an id that the decoders were allotted so far, and hashed ones that they hold."""
        self._hashed = 0
        self._noted: list[int] = []
        self._noted_hashed = -1
        self._changed = True
        """Whether somebody got on or off, or a prompt was computed, since the last note."""
        self._ending: list[tuple[int, int]] = []
        """Those whose last chunk was their end, until all blocks of the step are counted."""

    def _begin_segment(self) -> None:
        self._noted, self._noted_hashed, self._changed = [], -1, True
        self._log.held += [self._prefixes[ride[0]].held for ride in self._decodes.rides.values()]
        self._note()

    def _renumber(self, less: int) -> None:
        super()._renumber(less)
        self._prefixes = {request - less: prefix for request, prefix in self._prefixes.items()}
        self._riding = {request - less: occupant for request, occupant in self._riding.items()}

    def _prefix(self, request: int) -> Prefix:
        if request not in self._prefixes:
            inflow = self.inflow
            self._prefixes[request] = self._pool.prefix(inflow.prompt[request], inflow.prefix_ids[request])
        return self._prefixes[request]

    def _lack(self, step: int) -> int:
        """See `JumpEngine`."""
        return self._decodes.held(step) - self._hashed - self._own - self._pool.free

    def _settle_blocks(self) -> None:
        self._allot_until(self._step)

    def _allot_decodes(self) -> None:
        self._allot_until(self._step + 1)

    def _allot_until(self, step: int) -> None:
        """Allot what the decoders' rows before a step take."""
        own = self._decodes.held(step) - self._hashed
        self._pool.allocate(own - self._own)
        self._own = own

    def _fits(self, request: int, taken: int) -> bool:
        """See `JumpEngine`. The `taken` ones are allotted already."""
        if self._full_blocks + self.inflow.blocks[request] <= self._blocks:
            return True
        return self._lack(self._step + 1) + self._needed(request) <= 0

    def _needed(self, request: int) -> int:
        """See `JumpEngine`. Blocks that others hold are there already."""
        most = (self._tokens(request) - 1) // self._block_size
        return super()._needed(request) - self._pool.hits(self._prefix(request), most).held

    def _partial_blocks(self) -> int:
        """Those of them that it has not got yet."""
        computed = self._partial.computed if self._partial is not None else 0
        return super()._partial_blocks() - (-(-computed // self._block_size))

    def _take_cached(self, request: int, tokens: int) -> int:
        occupant = self._riding[request] = Occupant()
        most = (tokens - 1) // self._block_size
        return self._pool.take_hits(self._prefix(request), most, occupant) * self._block_size

    def _allot(self, request: int, computed: int, rows: int) -> None:
        size = self._block_size
        self._pool.allocate(-(-(computed + rows) // size) - -(-computed // size))
        self._pool.publish(self._prefixes[request], (computed + rows) // size)

    def _note_blocks(self, chunks: list[tuple[int, int, int, int, int]]) -> None:
        own = 0
        self._changed = True
        for request, rows, computed, _, flags in chunks:
            prefix = self._prefixes[request]
            high_water = self._pasts.get(request, NO_PAST).high_water
            served = max(0, computed - high_water) if flags & BOARDS else 0
            self._log.cached += (served, prefix.held, self._riding[request].parts)
            own += -(-(computed + rows) // self._block_size) - prefix.held
        self._note(own)

    def _note(self, own: int = 0) -> None:
        """Log what changed for the coming step; whoever prefills has `own` blocks without an id."""
        if not self._changed:
            return
        self._changed = False
        hashed = self._pool.used - self._own - own
        if hashed != self._noted_hashed:
            self._log.hashed += (self._step, hashed)
            self._noted_hashed = hashed
        for group in range(len(self._noted), len(self._deciding)):
            self._noted.append(-1 - group)
        for group, occupant in enumerate(self._deciding):
            if occupant.parts != self._noted[group]:
                self._log.parts += (self._step, group, occupant.parts)
                self._noted[group] = occupant.parts

    def _account(self, request: int) -> Occupant:
        group = self.inflow.group[request]
        while len(self._deciding) <= group:
            self._deciding.append(Occupant())
        return self._deciding[group]

    def _compute(self, request: int, rows: int, before: int, tokens: int, flags: int) -> None:
        super()._compute(request, rows, before, tokens, flags)
        if self._partial is not None and self._partial.request == request:
            return
        if self._log.chunks[-1] & ENDS:
            self._ending.append((request, before + rows))
            return
        self._changed = True
        prefix = self._prefixes[request]
        self._pool.hand_over(prefix, self._account(request))
        del self._riding[request]
        self._own += -(-(before + rows) // self._block_size) - prefix.held
        self._hashed += prefix.held
        self._log.held.append(prefix.held)

    def _take_step(self) -> bool:
        taken = super()._take_step()
        for request, computed in self._ending:
            self._give_back(request, computed, decodes=False, comes_back=False)
        self._ending.clear()
        return taken

    def _leap(self, end: int) -> bool:
        if self._decodes.n and self._partial is None:
            self._note()
        return super()._leap(end)

    def _give_back(self, request: int, computed: int, *, decodes: bool, comes_back: bool) -> None:
        self._changed = True
        size, prefix = self._block_size, self._prefix(request)
        blocks = -(-computed // size)
        if decodes:
            self._own -= blocks - prefix.held
            self._hashed -= prefix.held
        else:
            del self._riding[request]
        self._pool.release(prefix, blocks, computed // size if comes_back else 0)
        if not comes_back:
            del self._prefixes[request]


def jump_engine(config: EngineConfig, first: Arrival, rest: Iterable[Arrival]) -> JumpEngine:
    """The jump engine that a configuration asks for."""
    made = CachingJumpEngine if config.enable_prefix_caching else JumpEngine
    return made(config, first, rest)
